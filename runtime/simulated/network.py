"""The network between simulated nodes: a path for each direction of each pair, and its faults.

Rule: the plain profile keeps the promise of `runtime.links.interface`: frames arrive in order, and
whole or not at all. That promise allows loss. It forbids frames that arrive twice, too late, or
from an earlier connection of the link. Only some profiles produce such frames. The quorum must
survive them too, since one mistake in a transport would be enough to produce them.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import NamedTuple, Protocol

from runtime.http.requests import Handler
from runtime.links.interface import Peer
from runtime.simulated.world import Process, World

SILENCE_US = 5_000_000
"""After so long without an acknowledgement the system gives a connection up, as with
`runtime.links.tcp`."""
OLD_WITHIN_US = 200_000
_MEMORY = 64
_HISTORY = 128


class PathProfile(NamedTuple):
    """How the path from one node to another carries frames. Times are in microseconds."""

    low_us: int = 50
    high_us: int = 300
    tail: float = 0.002
    """The share of frames that take twenty times as long, or `resend_us` longer."""
    bytes_per_us: int = 125
    """125 is a gigabit a second."""
    loss: float = 0.0
    """The share that is lost."""
    duplicate: float = 0.0
    """The share that arrives twice, the second time up to `late_us` later."""
    late: float = 0.0
    """The share that arrives up to `late_us` later, after frames that were sent after it."""
    late_us: int = 1_000_000
    replay: float = 0.0
    """The share that is followed by an old frame, of this connection or an earlier one."""
    resend_us: int = 0
    """How long a sender waits before it sends a lost packet again. The second wait of a frame is
    twice as long, and so on, as in TCP. 0: the path has no such waits."""

    def draw_us(self, random: Random) -> int:
        """Return a delay."""
        delay = self.low_us + int(random.random() * (self.high_us - self.low_us))
        if self.tail and random.random() < self.tail:
            return delay + self._resend(random) if self.resend_us else delay * 20
        return delay

    def _resend(self, random: Random) -> int:
        wait = waited = self.resend_us
        while random.random() < self.tail:
            wait *= 2
            waited += wait
        return waited


PLAIN = PathProfile()
LOSSY = PathProfile(loss=0.3)
WILD = PathProfile(loss=0.02, duplicate=0.15, late=0.08, late_us=2_500_000, replay=0.05)
"""This breaks the promise of `runtime.links.interface`."""
SLOW = PathProfile(low_us=20_000, high_us=300_000, tail=0.0, bytes_per_us=1)


class Stream:
    """One direction of one connection. Frames on it stay in order."""

    def __init__(self) -> None:
        self.last_due_us = 0


class History:
    """Frames of a whole run, evenly spread over it, and the present connection."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.process: Process | None = None
        self.again: Callable[[bytes], Callable[[], None]] = lambda _frame: lambda: None
        self._every = 3
        self._seen = 0

    def note(
        self,
        frame: bytes,
        again: Callable[[bytes], Callable[[], None]],
        process: Process,
    ) -> None:
        """Record a sent frame. If there are too many, every second one is forgotten."""
        self.again, self.process = again, process
        self._seen += 1
        if self._seen % self._every:
            return
        self.frames.append(frame)
        if len(self.frames) > _HISTORY:
            del self.frames[::2]
            self._every *= 2


class Path:
    """The path from one node to another."""

    def __init__(self, world: World, source: int, target: int) -> None:
        self.source = source
        self.target = target
        self.profile = PLAIN
        self.cuts = 0
        """How often the path was cut. It distinguishes one cut from the next."""
        self.old_frames: deque[bytes] = deque(maxlen=_MEMORY)
        self.history: History | None = None
        """The frames of the whole run; None unless `remember` was called."""
        self._world = world
        self._random = world.random(f"path/{source}/{target}")
        self._blocks = 0
        self._holds = False
        self._held: list[Callable[[], object]] = []

    @property
    def blocked(self) -> bool:
        """True if nothing arrives."""
        return self._blocks > 0

    def block(self, *, hold: bool = False) -> None:
        """Let nothing arrive, until `unblock` was called as often as `block`.

        With `hold`, what is sent meanwhile arrives afterwards, as on a connection that survives
        the block and retransmits. Else it is lost.
        """
        if not self._blocks:
            self.cuts += 1
        self._blocks += 1
        self._holds = hold

    def unblock(self) -> None:
        """Undo one block. Do nothing if there is none."""
        self._blocks = max(self._blocks - 1, 0)
        if not self._blocks:
            held, self._held = self._held, []
            for send in held:
                send()

    def unblock_all(self) -> None:
        """Undo every block."""
        self._blocks = min(self._blocks, 1)
        self.unblock()

    def carry(
        self,
        size: int,
        deliver: Callable[[], None],
        process: Process | None,
        label: str,
        stream: Stream | None = None,
    ) -> bool:
        """Deliver a greeting, a reset or a request, in order within a stream.

        It always arrives, unless the path is blocked. Returns False if it is lost.
        """
        if self._blocks:
            if self._holds:
                self._held.append(partial(self.carry, size, deliver, process, label, stream))
            return self._holds
        self._schedule(size, deliver, process, label, stream)
        return True

    def carry_frame(
        self,
        frame: bytes,
        deliver: Callable[[], None],
        again: Callable[[bytes], Callable[[], None]],
        process: Process,
        stream: Stream,
    ) -> bool:
        """Deliver a frame as the profile says. `again` returns what delivers a frame once more.

        Returns False if the frame is lost.
        """
        profile = self.profile
        if self.history is not None:
            self.history.note(frame, again, process)
        if self._blocks:
            if self._holds:
                self._held.append(partial(self.carry_frame, frame, deliver, again, process, stream))
            return self._holds
        random = self._random
        if profile.loss and random.random() < profile.loss:
            return False
        if profile.late and random.random() < profile.late:
            delay_us = profile.draw_us(random) + int(random.random() * profile.late_us)
            self._world.schedule(delay_us, deliver, process, "frame-late")
        else:
            self._schedule(len(frame), deliver, process, "frame", stream)
        if profile.duplicate and random.random() < profile.duplicate:
            delay_us = profile.draw_us(random) + int(random.random() * profile.late_us)
            self._world.schedule(delay_us, again(frame), process, "frame-twice")
        if profile.replay:
            self._replay(frame, again, process)
        return True

    def send_old(self, dice: Random) -> int:
        """Deliver some earlier frames on the present connection; return how many."""
        if self.history is None or self.history.process is None:
            return 0
        frames = dice.sample(self.history.frames, min(len(self.history.frames), 8))
        for frame in frames:
            delay_us = dice.randrange(OLD_WITHIN_US)
            arrive = self.history.again(frame)
            self._world.schedule(delay_us, arrive, self.history.process, "frame-old")
        return len(frames)

    def _replay(
        self,
        frame: bytes,
        again: Callable[[bytes], Callable[[], None]],
        process: Process,
    ) -> None:
        random = self._random
        if self.old_frames and random.random() < self.profile.replay:
            old = self.old_frames[random.randrange(len(self.old_frames))]
            delay_us = self.profile.draw_us(random)
            self._world.schedule(delay_us, again(old), process, "frame-old")
        if random.random() < 0.1:
            self.old_frames.append(frame)

    def _schedule(
        self,
        size: int,
        deliver: Callable[[], None],
        process: Process | None,
        label: str,
        stream: Stream | None,
    ) -> None:
        profile = self.profile
        delay_us = profile.draw_us(self._random) + size // profile.bytes_per_us
        if stream is not None:
            due_us = self._world.now_us + delay_us
            due_us = stream.last_due_us = max(due_us, stream.last_due_us)
            delay_us = due_us - self._world.now_us
        self._world.schedule(delay_us, deliver, process, label)


class ListeningLinks(Protocol):
    """What listens for links at an address: `SimulatedLinks`."""

    @property
    def process(self) -> Process: ...

    @property
    def listening(self) -> bool: ...


class Server(Protocol):
    """What serves requests under a URL: `SimulatedServer`."""

    @property
    def process(self) -> Process: ...

    @property
    def handler(self) -> Handler: ...

    @property
    def serving(self) -> bool: ...

    def begin(self, broken: Callable[[], None]) -> int: ...

    def end(self, number: int) -> None: ...


class SimulatedNetwork:
    """All paths, and the listener or server at each address."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.listeners: dict[tuple[str, int], ListeningLinks] = {}
        """The last listener at each address; it may have died."""
        self.servers: dict[str, Server] = {}
        """The last server under each URL; it may have died."""
        self._paths: dict[tuple[int, int], Path] = {}
        self._profile = PLAIN
        self.plain_since_us = -math.inf
        """Since when nothing that is sent is lost; -inf: always, inf: something may be now."""
        self.healed_us = math.inf
        """When all faults of the network were ended last; inf: never."""
        self._remembers = False
        self._on_cut: list[Callable[[Path], None]] = []

    def peer(self, node_id: int) -> Peer:
        """Return the address of a node."""
        return Peer(node_id, f"node-{node_id}", 9093)

    def path(self, source: int, target: int) -> Path:
        """Return the path from one node to another."""
        path = self._paths.get((source, target))
        if path is None:
            path = self._paths[source, target] = Path(self.world, source, target)
            path.profile = self._profile
            path.history = History() if self._remembers else None
        return path

    def remember(self) -> None:
        """Keep frames of the whole run from now on, for `Path.send_old`."""
        self._remembers = True
        for path in self._paths.values():
            path.history = path.history or History()

    def paths(self) -> list[Path]:
        """Return all paths that were ever used, in the order of first use."""
        return list(self._paths.values())

    def set_profile(self, profile: PathProfile) -> None:
        """Give every path this profile, also those that are first used later."""
        if profile is not self._profile:
            self.plain_since_us = self.world.now_us if profile is PLAIN else math.inf
        self._profile = profile
        for path in self._paths.values():
            path.profile = profile

    def block(self, source: int, target: int, *, hold: bool = False) -> None:
        """Cut one path. Connections over it break after `SILENCE_US`."""
        path = self.path(source, target)
        path.block(hold=hold)
        self.world.note("block", source, target)
        for callback in list(self._on_cut):
            callback(path)

    def unblock(self, source: int, target: int) -> None:
        """Undo one `block` of one path."""
        self.path(source, target).unblock()
        self.world.note("unblock", source, target)

    def cut(self, one: Iterable[int], other: Iterable[int], *, hold: bool = False) -> None:
        """Cut the paths in both directions between the nodes of `one` and those of `other`."""
        others = list(other)
        for a in one:
            for b in others:
                self.block(a, b, hold=hold)
                self.block(b, a, hold=hold)

    def mend(self, one: Iterable[int], other: Iterable[int]) -> None:
        """Undo one `cut`."""
        others = list(other)
        for a in one:
            for b in others:
                self.unblock(a, b)
                self.unblock(b, a)

    def heal(self) -> None:
        """End all blocks and give every path the plain profile."""
        self.healed_us = self.world.now_us
        self.set_profile(PLAIN)
        for path in self._paths.values():
            path.unblock_all()

    def on_cut(self, callback: Callable[[Path], None]) -> None:
        """Call back when a path is cut."""
        self._on_cut.append(callback)

    def drop_on_cut(self, callback: Callable[[Path], None]) -> None:
        """Don't call back any more."""
        if callback in self._on_cut:
            self._on_cut.remove(callback)
