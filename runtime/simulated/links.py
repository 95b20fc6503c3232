"""Simulated links: `runtime.links.interface.PeerLinks` over the simulated network.

Rule: as with sockets, each side dials the peers to which it has no link. If two connections cross,
one is kept. A node sees a killed peer as `RESET`, then `REFUSED`. From a peer without power or
behind a cut it hears nothing, then sees it as `UNREACHABLE`. From a paused peer it hears nothing.
"""

import errno
import zlib
from collections.abc import Callable
from functools import partial

from runtime.links.interface import FRAME_BYTES_MAX, LinkEnd, LinkHandler, OnRejected, Peer
from runtime.simulated.network import SILENCE_US, Path, SimulatedNetwork, Stream
from runtime.simulated.process import Death, SimulatedProcess
from runtime.simulated.world import ScheduledEvent

DIAL_TIMEOUT_US = 1_000_000
REDIAL_FIRST_US = 20_000
REDIAL_MOST_US = 500_000
LASTED_US = 100_000
"""A link that broke sooner is redialled with back-off. Otherwise two nodes could dial each other in
a busy loop."""
QUEUE_BYTES_MAX = 64 * 1024 * 1024


class _Dial:
    """An attempt to open a link."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.over = False
        self.timer: ScheduledEvent | None = None

    def end(self) -> None:
        self.over = True
        if self.timer is not None:
            self.timer.cancel()


class _Side(Stream):
    """One end of a connection, and the stream of frames from there to the other end."""

    def __init__(self, owner: "SimulatedLinks", node_id: int, path: Path) -> None:
        super().__init__()
        self.owner = owner
        self.node_id = node_id
        self.path = path
        self.open = False
        self.opened_us = 0
        self.queued = 0
        """The number of bytes that were sent from here and have not arrived."""
        self.other: _Side = self

    def arrive(self, frame: bytes, size: int) -> None:
        """Take a frame from the other end; `size` is 0 for a repeated or old frame."""
        self.other.queued -= size
        if self.open:
            self.owner.take(self, frame)
        else:
            self.owner.refuse(self)

    def arrival(self, frame: bytes) -> Callable[[], None]:
        """Return what delivers a repeated or old frame."""
        return partial(self.arrive, frame, 0)


class SimulatedLinks:
    """All links of one process of a node."""

    def __init__(
        self,
        network: SimulatedNetwork,
        process: SimulatedProcess,
        *,
        host: str | None = None,
        port: int | None = None,
        on_rejected: OnRejected | None = None,
    ) -> None:
        default = network.peer(process.node_id)
        self.process = process
        self.address = (host or default.host, port or default.port)
        self._network = network
        self._random = network.world.random(f"links/{process.node_id}")
        self._on_rejected = on_rejected
        self._handler: LinkHandler | None = None
        self._peers: dict[int, Peer] = {}
        self._sides: dict[int, _Side] = {}
        self._dials: dict[int, _Dial] = {}
        self._backoff_us: dict[int, int] = {}

    @property
    def listening(self) -> bool:
        """True if dials are answered."""
        return self._handler is not None and self.process.alive

    def start(self, handler: LinkHandler) -> None:
        self.process.ensure_alive()
        present = self._network.listeners.get(self.address)
        if present is not None and present.listening:
            where = f"{self.address[0]}:{self.address[1]}"
            raise OSError(errno.EADDRINUSE, f"{where} is in use (simulated)")
        self._network.listeners[self.address] = self
        self._network.on_cut(self._cut)
        self.process.on_death(self._die)
        self._handler = handler
        for node_id in self._peers:
            self._dial(node_id)

    def set_peers(self, peers: tuple[Peer, ...]) -> None:
        self.process.ensure_alive()
        before = self._peers
        self._peers = {p.node_id: p for p in peers if p.node_id != self.process.node_id}
        for node_id, peer in before.items():
            if self._peers.get(node_id) != peer:
                self._drop_dial(node_id)
                self._close(node_id, LinkEnd.CLOSED)
        for node_id in self._peers:
            self._dial(node_id)

    def send(self, node_id: int, frame: bytes) -> bool:
        size = len(frame)
        assert 0 < size <= FRAME_BYTES_MAX, f"a frame of {size} bytes"
        side = self._sides.get(node_id)
        if side is None or not self.process.alive or side.queued + size > QUEUE_BYTES_MAX:
            return False
        other = side.other
        if not other.owner.process.alive:
            self._send_to_the_dead(side)
            return True
        side.queued += size
        arrive = partial(other.arrive, frame, size)
        if not side.path.carry_frame(frame, arrive, other.arrival, other.owner.process, side):
            side.queued -= size
        return True

    def stop(self) -> None:
        if self._handler is None:
            return
        self._handler = None
        for node_id in list(self._dials):
            self._drop_dial(node_id)
        for node_id in list(self._sides):
            self._close(node_id, LinkEnd.CLOSED)
        self._network.drop_on_cut(self._cut)

    def reset(self, node_id: int) -> None:
        """Break the link to a peer, if there is one. For faults."""
        side = self._sides.get(node_id)
        if side is not None:
            self._after(0, side, LinkEnd.RESET)
            side.other.owner._after(0, side.other, LinkEnd.RESET)  # noqa: SLF001 - its twin

    def take(self, side: _Side, frame: bytes) -> None:
        """Pass a frame to the handler. Called by `_Side`."""
        if self._handler is not None:
            self.process.world.note("frame", self.process.node_id, zlib.crc32(frame))
            self._handler.on_frame(side.node_id, frame)

    def refuse(self, side: _Side) -> None:
        """Have the operating system answer that it knows no such connection. Called by `_Side`.

        The message that closed the connection may have been lost. Without this answer the other
        end would consider the connection open, and send frames into it for ever.
        """
        self._tell(side.other, LinkEnd.RESET)

    # -- dialling ----------------------------------------------------------------------------

    def _dial(self, node_id: int) -> None:
        peer = self._peers.get(node_id)
        if peer is None or self._handler is None:
            return
        if node_id in self._sides or node_id in self._dials:
            return
        dial = self._dials[node_id] = _Dial(peer)
        fail = partial(self._dial_failed, dial, LinkEnd.UNREACHABLE)
        dial.timer = self.process.schedule(DIAL_TIMEOUT_US, fail, "dial-time-out")
        greeting = self._handler.greeting()
        knock = partial(self._knock, dial, greeting)
        self._path_to(peer).carry(len(greeting), knock, None, "dial")

    def _knock(self, dial: _Dial, greeting: bytes) -> None:
        """A dial arrives at the peer's machine. Its operating system answers, not a process."""
        target = self._network.listeners.get((dial.peer.host, dial.peer.port))
        if target is not None and target.listening:
            assert isinstance(target, SimulatedLinks), "nothing else listens for links"
            accept = partial(target._accept, self, dial, greeting)  # noqa: SLF001 - its twin
            target.process.schedule(0, accept, "accept")
        elif target is None or target.process.machine.powered:
            back = self._network.path(self._world_id(dial.peer), self.process.node_id)
            refused = partial(self._dial_failed, dial, LinkEnd.REFUSED)
            back.carry(0, refused, self.process, "refused")

    def _accept(self, dialler: "SimulatedLinks", dial: _Dial, greeting: bytes) -> None:
        back = self._network.path(self.process.node_id, dialler.process.node_id)
        if self._handler is None:
            refused = partial(dialler._dial_failed, dial, LinkEnd.REFUSED)  # noqa: SLF001
            back.carry(0, refused, dialler.process, "refused")
            return
        verdict = self._judge(self._handler, None, greeting)
        if isinstance(verdict, str):
            self._rejected(verdict)
            rejected = partial(dialler._dial_failed, dial, LinkEnd.REJECTED)  # noqa: SLF001
            back.carry(0, rejected, dialler.process, "rejected")
            return
        if self._keeps_another(verdict, dialler):
            # Close without a report: the dialler has the other connection, or will get it.
            closed = partial(dialler._dial_failed, dial, LinkEnd.CLOSED)  # noqa: SLF001
            back.carry(0, closed, dialler.process, "crossed")
            return
        if verdict in self._sides:
            self._down(self._sides[verdict], LinkEnd.RESET)
        mine = _Side(self, verdict, back)
        there = self._network.path(dialler.process.node_id, self.process.node_id)
        mine.other = _Side(dialler, dial.peer.node_id, there)
        mine.other.other = mine
        answer = self._handler.greeting()
        answered = partial(dialler._answered, dial, mine.other, answer)  # noqa: SLF001
        back.carry(len(answer), answered, dialler.process, "answered", mine)
        self._up(mine)

    def _judge(self, handler: LinkHandler, dialled: int | None, greeting: bytes) -> int | str:
        verdict = handler.judge(dialled, greeting, None)
        if isinstance(verdict, str):
            return verdict
        if dialled not in {None, verdict}:
            return f"node {verdict} answered where node {dialled} was expected"
        if verdict == self.process.node_id:
            return f"two nodes have the id {verdict}"
        return verdict

    def _keeps_another(self, node_id: int, dialler: "SimulatedLinks") -> bool:
        side = self._sides.get(node_id)
        if side is not None:
            return side.other.owner is dialler and side.other.open
        return node_id in self._dials and self.process.node_id < node_id

    def _answered(self, dial: _Dial, side: _Side, greeting: bytes) -> None:
        if dial.over or self._handler is None or dial.peer.node_id in self._sides:
            self._tell(side.other, LinkEnd.CLOSED)
            return
        verdict = self._judge(self._handler, dial.peer.node_id, greeting)
        if isinstance(verdict, str):
            self._rejected(verdict)
            self._tell(side.other, LinkEnd.REJECTED)
            self._dial_failed(dial, LinkEnd.REJECTED)
            return
        self._up(side)

    def _dial_failed(self, dial: _Dial, end: LinkEnd) -> None:
        if dial.over:
            return
        node_id = dial.peer.node_id
        self._drop_dial(node_id)
        self._redial(node_id)
        told = end in {LinkEnd.REFUSED, LinkEnd.UNREACHABLE} and node_id not in self._sides
        if told and self._handler is not None:
            self._handler.on_link_down(node_id, end)

    def _redial(self, node_id: int) -> None:
        backoff_us = self._backoff_us.get(node_id, REDIAL_FIRST_US)
        self._backoff_us[node_id] = min(backoff_us * 2, REDIAL_MOST_US)
        delay_us = int(backoff_us * (0.5 + self._random.random() / 2))
        self.process.schedule(delay_us, partial(self._dial, node_id), "redial")

    def _drop_dial(self, node_id: int) -> None:
        dial = self._dials.pop(node_id, None)
        if dial is not None:
            dial.end()

    # -- open links --------------------------------------------------------------------------

    def _up(self, side: _Side) -> None:
        self._drop_dial(side.node_id)
        self._backoff_us.pop(side.node_id, None)
        side.open = True
        side.opened_us = self.process.world.now_us
        self._sides[side.node_id] = side
        if self._handler is not None:
            self._handler.on_link_up(side.node_id)

    def _down(self, side: _Side, end: LinkEnd) -> None:
        if not side.open:
            return
        side.open = False
        del self._sides[side.node_id]
        # Redial at once, to learn soon whether the peer's process is dead. Later redials back off.
        if end is LinkEnd.RESET and self.process.world.now_us - side.opened_us >= LASTED_US:
            self.process.schedule(0, partial(self._dial, side.node_id), "redial")
        else:
            self._redial(side.node_id)
        if self._handler is not None:
            self._handler.on_link_down(side.node_id, end)

    def _close(self, node_id: int, end: LinkEnd) -> None:
        side = self._sides.get(node_id)
        if side is not None:
            self._tell(side.other, end)
            self._down(side, end)

    def _tell(self, side: _Side, end: LinkEnd) -> None:
        """Send the other side that the connection is over. The message may be lost."""
        path = self._network.path(self.process.node_id, side.owner.process.node_id)
        down = partial(side.owner._down, side, end)  # noqa: SLF001 - its twin
        path.carry(0, down, side.owner.process, f"end-{end.value}", side.other)

    def _after(self, delay_us: int, side: _Side, end: LinkEnd) -> None:
        self.process.schedule(delay_us, partial(self._down, side, end), f"end-{end.value}")

    def _send_to_the_dead(self, side: _Side) -> None:
        """Have the dead peer's operating system, if it runs, reset the connection."""
        dead = side.other.owner
        back = self._network.path(dead.process.node_id, self.process.node_id)
        if dead.process.machine.powered and not side.path.blocked:
            down = partial(self._down, side, LinkEnd.RESET)
            back.carry(0, down, self.process, "end-reset")

    def _die(self, how: Death) -> None:
        self._network.drop_on_cut(self._cut)
        for side in list(self._sides.values()):
            if how is Death.KILLED:
                self._tell(side.other, LinkEnd.RESET)
            else:
                side.other.owner._after(SILENCE_US, side.other, LinkEnd.UNREACHABLE)  # noqa: SLF001

    def _cut(self, path: Path) -> None:
        """Give connections up whose path, in either direction, stays cut for `SILENCE_US`."""
        me = self.process.node_id
        for side in list(self._sides.values()):
            back = self._network.path(side.path.target, me)
            if path is side.path or path is back:
                give_up = partial(self._give_up, side, path, path.cuts)
                self.process.schedule(SILENCE_US, give_up, "silence")

    def _give_up(self, side: _Side, path: Path, cuts: int) -> None:
        if path.blocked and path.cuts == cuts:
            self._down(side, LinkEnd.UNREACHABLE)

    def _rejected(self, sentence: str) -> None:
        if self._on_rejected is not None:
            self._on_rejected(sentence)

    def _path_to(self, peer: Peer) -> Path:
        return self._network.path(self.process.node_id, self._world_id(peer))

    def _world_id(self, peer: Peer) -> int:
        """Return the id of the node that listens at an address."""
        listener = self._network.listeners.get((peer.host, peer.port))
        return peer.node_id if listener is None else listener.process.node_id
