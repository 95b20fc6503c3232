"""A peer that forges frames: it is linked as a controller, and sends what no sound node would send.

Rule: it runs on a node's machine while that node is down, under the node's id, like an attacker
with the node's certificate. With a *fresh* directory id it may send anything, also frames that are
true in all fields but one, because the frames of a non-voter have no effect. With the node's own
*pinned* directory id it is a voter, and Raft believes a voter's plausible lie, such as a vote in
the right term or an acknowledgement of the right index. So a pinned forger's frames have extreme
values in the fields that matter.
"""

from collections import Counter
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import google_crc32c
import msgpack

from quorum.membership.greeting import WIRE_FORMAT, Greeting, decode_greeting
from quorum.terms import LEAP_MAX, TERM_MAX
from quorum.wire.codec import dumps
from quorum.wire.frames import _SHAPES, FrameKind
from runtime.links.interface import LinkEnd
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import US

if TYPE_CHECKING:
    from tests.simulation.quorum_cluster import QuorumCluster

GAP_S = (0.0003, 0.006)
NUMBERS = (0, -1, 1, 2**20, 2**31 - 1, 2**31, 2**62 - 1, 2**62, 2**63 - 1, 2**64 - 1)
FAR = tuple(number for number in NUMBERS if not 0 <= number <= 1)
STRINGS = ("", "log", "log/owner", "log/../journal/x", "\0", "a" * 5000)
OTHERS: tuple[Any, ...] = (None, True, 1.5, b"", "", (), {}, 7)
"""Values of wrong types, mostly."""
LEAPS = (0, 1, 2, LEAP_MAX, LEAP_MAX + 1, 3 * LEAP_MAX)


class Forger:
    """A `LinkHandler` that sends forged frames to everybody, from `begin` to `end`."""

    def __init__(
        self, cluster: "QuorumCluster", node_id: int, dice: Random, *, pinned: bool
    ) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.dice = dice
        self.pinned = pinned
        self.said: Counter[str] = Counter()
        self.process: SimulatedProcess | None = None
        self.linked: list[int] = []

    @property
    def speaks(self) -> bool:
        return self.process is not None and self.process.alive

    def begin(self) -> None:
        """Take the node's place."""
        host = self.cluster.hosts[self.node_id]
        journal = self.cluster.owners[self.node_id].quorum.context.journal
        self.formation = journal.formation or b""
        self.directory = journal.directory_id if self.pinned else self.dice.randbytes(16)
        host.kill()
        self.linked = []
        self.process = host.boot()
        self.links = host.links()
        self.links.set_peers(self.cluster.peers)
        self.process.run(partial(self.links.start, self), "forger")
        self._plan()

    def end(self) -> None:
        """Fall silent."""
        if self.process is not None and self.process.alive:
            self.process.kill()

    def _plan(self) -> None:
        if self.process is not None and self.process.alive:
            delay = int(self.dice.uniform(*GAP_S) * US)
            self.process.schedule(delay, self._speak, "forge")

    def _speak(self) -> None:
        if self.linked:
            victim = self.dice.choice(self.linked)
            frame = self.frame(victim)
            if frame:
                self.links.send(victim, frame)
        if self.dice.random() < 0.01:
            self.links.reset(self.dice.choice(list(self.cluster.hosts)))
        self._plan()

    # -- runtime.links.interface.LinkHandler --------------------------------------------------

    def greeting(self) -> bytes:
        formation = self.formation
        if not self.pinned:
            formation = self.dice.choice((b"", formation, dumps(("x", ((1, 2**40),)))))
        empty = self.dice.random() < 0.5
        fields = (WIRE_FORMAT, self.cluster_id(), self.node_id, self.directory, empty, formation)
        return dumps(Greeting(*fields))

    def cluster_id(self) -> str:
        return self.cluster.config(self.node_id).cluster_id

    def judge(self, _node_id: int | None, greeting: bytes, _certified: str | None) -> int | str:
        return decode_greeting(greeting).node_id

    def on_link_up(self, node_id: int) -> None:
        self.linked = sorted({*self.linked, node_id})

    def on_link_down(self, node_id: int, _end: LinkEnd) -> None:
        self.linked = [n for n in self.linked if n != node_id]

    def on_frame(self, node_id: int, frame: bytes) -> None:
        pass

    # -- what it says -------------------------------------------------------------------------

    def frame(self, victim: int) -> bytes:
        """Return a forged frame for a node."""
        dice = self.dice
        kind = dice.choice(list(FrameKind))
        fields = self._as_voter(kind, victim) if self.pinned else self._as_stranger(kind, victim)
        directory = self.directory if dice.random() < 0.98 else dice.randbytes(dice.choice((0, 16)))
        values: list[Any] = [int(kind), self._term(kind, victim), directory, *fields]
        self.said[kind.name] += 1
        luck = dice.random()
        if luck < 0.05:
            values[dice.randrange(len(values))] = dice.choice(OTHERS)
        elif luck < 0.07:
            values.append(dice.choice(OTHERS))
        elif luck < 0.09:
            return bytes(dice.randbytes(dice.randrange(1, 60)))
        data: bytes = msgpack.packb([_packable(value) for value in values])
        return data[: dice.randrange(1, len(data))] if luck > 0.98 else data

    def _term(self, kind: FrameKind, victim: int) -> int:
        dice, term = self.dice, self._context(victim).term
        if self.pinned and kind == FrameKind.VOTE:
            return dice.choice((0, -1, TERM_MAX, 2**31, 2**62 - 1))
        near = [term + leap for leap in LEAPS]
        return dice.choice((*near, max(0, term - 1), TERM_MAX - 1, TERM_MAX, *NUMBERS))

    def _context(self, node_id: int) -> Any:
        return self.cluster.owners[node_id].quorum.context

    def _as_stranger(self, kind: FrameKind, victim: int) -> list[Any]:
        """True values, or extreme ones: any mixture."""
        dice, view = self.dice, self._context(victim).view
        true = {
            int: (view.last, view.last + 1, view.last_term, 1),
            bool: (True, False),
            str: STRINGS,
            bytes: (b"", bytes(12), self.formation, dice.randbytes(12), self._manifest()),
        }
        fields: list[Any] = []
        for field in _SHAPES[kind][3:]:
            if field is tuple:
                fields.append(self._entries(kind, view.last))
            elif field is int:
                fields.append(dice.choice((*true[int], *NUMBERS)))
            else:
                fields.append(dice.choice(true[field]))
        return fields

    def _entries(self, kind: FrameKind, last: int) -> Any:
        dice = self.dice
        if kind == FrameKind.LISTED:
            return dice.choice(((), (("x", 5),), (("../x", -1),), (("x", 2**63),) * 300, 5))
        start, count = dice.choice((last, *NUMBERS)), dice.choice((0, 1, 3, 2000))
        term = dice.choice((0, 1, TERM_MAX))
        junk: tuple[Any, ...] = tuple((b"\1", start + 1 + n, term) for n in range(count))
        return dice.choice((junk, (), (5,) * 50_000, ((b"", 1, 1),), (("text", 1, 1),), b""))

    def _manifest(self) -> bytes:
        """What passes its checksum, and is none."""
        dice = self.dice
        index, term = dice.choice(FAR), dice.choice(FAR)
        first, second = (b"\1", index, term), (b"\1", dice.choice(FAR), term)
        cluster = dice.choice((self.cluster_id(), "another"))
        body = dice.choice(
            (
                [1, cluster, first, second, b"", [], b"", 0],
                [1, cluster, first, first, b"x" * 8, [[1, b"", "", 0]], b"", -1],
                [1, 5, 5, 5, 5, 5, 5, 5],
                [2, cluster],
                [1],
                7,
            )
        )
        packed: bytes = msgpack.packb(_packable(body))
        head = b"QRTMANI1" + len(packed).to_bytes(4, "little")
        return head + google_crc32c.value(packed).to_bytes(4, "little") + packed

    def _as_voter(self, kind: FrameKind, victim: int) -> list[Any]:
        """Each frame with an extreme value where it would carry weight."""
        fields = self._as_stranger(kind, victim)
        dice = self.dice
        if kind == FrameKind.APPEND:
            # Behind an entry that nobody has: what a leader says of one that is there is believed.
            fields[1] = dice.choice(FAR)
        elif kind == FrameKind.SNAPSHOT:
            fields[1] = self._manifest()
        elif kind in (FrameKind.PREVOTE, FrameKind.PROBE_ANSWER):
            fields[0] = dice.choice(FAR)
        elif kind == FrameKind.ACK:
            fields[0] = dice.choice(NUMBERS)
        elif kind == FrameKind.REMEMBER:
            # Of us it may remember what it likes. What it says of the victim, it might be told.
            fields[2:] = [dice.choice((b"", b"short")), dice.choice(NUMBERS)]
        elif kind == FrameKind.DIGEST:
            fields[5] = dice.choice(FAR)
        return fields


def _packable(value: Any) -> Any:
    """Bring numbers into what MessagePack can say."""
    if type(value) is int:
        return max(-(2**63), min(value, 2**64 - 1))
    if isinstance(value, list | tuple):
        return [_packable(item) for item in value]
    return value
