"""One real QuorumNode on a simulated machine. The test plays its peers, frame by frame."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from quorum.api import LeaderAndEpoch, Mark
from quorum.config import QuorumConfig
from quorum.membership.formation import encode_formation
from quorum.membership.greeting import WIRE_FORMAT, Greeting
from quorum.node import QuorumNode
from quorum.wire.codec import dumps
from quorum.wire.frames import FrameKind, decode, encode
from runtime.links.interface import LinkEnd, LinkHandler, Peer
from runtime.simulated.disk_faults import FAST, STUCK
from runtime.simulated.host import SimulatedHost
from runtime.simulated.network import SimulatedNetwork
from runtime.simulated.world import World

Fields = tuple[Any, ...]
CLUSTER = "bench-cluster-00000001"
DIRECTORIES = {number: bytes([number]) * 16 for number in range(2, 10)}
NOOP = b"\1"


def _drop(_logger: object, _name: str, _event: Any) -> Any:
    raise structlog.DropEvent


class PlayedLinks:
    """Keeps what the node sends; a peer in `down` gets nothing."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Fields]] = []
        self.down: set[int] = set()
        self.full: set[int] = set()
        self.stopped = False

    def start(self, handler: LinkHandler) -> None:
        self.handler = handler

    def set_peers(self, peers: tuple[Peer, ...]) -> None:
        self.peers = peers

    def send(self, node_id: int, frame: bytes) -> bool:
        if node_id in self.full:
            return False
        self.sent.append((node_id, decode(frame)))
        return True

    def stop(self) -> None:
        self.stopped = True


class Heard:
    """A listener that writes everything down."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def on_committed(self, index: int, epoch: int, payloads: Sequence[bytes]) -> None:
        self.events.append(("committed", index, epoch, tuple(payloads)))

    def on_leadership(self, epoch: int) -> None:
        self.events.append(("leading", epoch))

    def on_leadership_lost(self, epoch: int) -> None:
        self.events.append(("lost", epoch))

    def on_leader_changed(self, now: LeaderAndEpoch) -> None:
        self.events.append(("leader", now.leader, now.epoch))

    def on_catch_up(self, mark: Mark, source: int) -> None:
        self.events.append(("install", mark, source))

    def on_catch_up_dropped(self) -> None:
        self.events.append(("dropped",))

    def on_caught_up(self, mark: Mark) -> None:
        self.events.append(("installed", mark))

    def on_contacts(self, node_id: int, contacts: bytes) -> None:
        self.events.append(("contacts", node_id, contacts))

    def on_confirmed(self, node_id: int, confirmed: bytes) -> None:
        self.events.append(("confirmed", node_id, confirmed))

    def on_digest(self, node_id: int, digest: bytes, voter: bool) -> None:
        self.events.append(("digest", node_id, digest, voter))

    def on_stopped(self, reason: str) -> None:
        self.events.append(("stopped", reason))

    def kinds(self) -> list[str]:
        return [event[0] for event in self.events]

    def payloads(self) -> list[bytes]:
        return [p for event in self.events if event[0] == "committed" for p in event[3]]


class Bench:
    """Node 1 of `voters`, formed and linked to all unless a test says otherwise."""

    def __init__(self, voters: int = 3, *, formed: bool = True, **settings: Any) -> None:
        self.world = World(7)
        self.host = SimulatedHost(self.world, SimulatedNetwork(self.world), 1)
        self.peers = tuple(Peer(number, f"node-{number}", 9093) for number in range(1, voters + 1))
        self.others = [peer.node_id for peer in self.peers if peer.node_id != 1]
        self.settings = settings
        self.boot()
        if formed:
            for number in self.others:
                self.link(number)

    def boot(self) -> None:
        """Begin an incarnation of the node."""
        self.process = self.host.boot()
        self.links = PlayedLinks()
        self.heard = Heard()
        self.disk = self.host.disk()
        config = QuorumConfig(cluster_id=CLUSTER, node_id=1, peers=self.peers, **self.settings)
        self.node = QuorumNode(
            config,
            clock=self.process.clock,
            random=random.Random(2 + self.host.incarnations),
            disk=self.disk,
            links=self.links,
            listener=self.heard,
            log=structlog.wrap_logger(
                None, processors=[_drop], wrapper_class=structlog.BoundLogger
            ),
        )
        self.mark = self.call(self.node.start)

    def call(self, work: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Run something in the node's process, and what it makes due at once."""
        result: list[Any] = []
        self.process.run(lambda: result.append(work(*args, **named)))
        self.settle()
        return result[0] if result else None

    def settle(self, seconds: float = 0.0) -> None:
        """Let time pass: without an argument, only what is due now."""
        self.world.run_for(seconds)

    def synced(self) -> None:
        """Let the disk finish; no timer of the quorum is that short."""
        self.world.run_for(0.02)

    def stick_disk(self) -> None:
        self.host.faults.set_profile(STUCK)

    def free_disk(self) -> None:
        self.host.faults.set_profile(FAST)
        self.synced()

    # Playing a peer.

    def greeting_of(self, number: int, **other: Any) -> bytes:
        fields: dict[str, Any] = {
            "wire_format": WIRE_FORMAT,
            "cluster_id": CLUSTER,
            "node_id": number,
            "directory_id": DIRECTORIES[number],
            "empty": True,
            "formation": b"",
        } | other
        return dumps(Greeting(**fields))

    def link(self, number: int, **other: Any) -> int | str:
        verdict = self.call(self.node.judge, None, self.greeting_of(number, **other), None)
        if verdict == number:
            self.call(self.node.on_link_up, number)
            # As every node does first: it remembers nothing of us.
            directory = other.get("directory_id", DIRECTORIES[number])
            frame = encode(FrameKind.REMEMBER, 0, directory, b"", 0, b"", 0)
            self.call(self.node.on_frame, number, frame)
        return verdict

    def unlink(self, number: int, *ends: LinkEnd) -> None:
        for end in ends or (LinkEnd.CLOSED,):
            self.call(self.node.on_link_down, number, end)

    def say(self, number: int, kind: FrameKind, term: int, *fields: Any) -> None:
        directory = DIRECTORIES[number]
        self.call(self.node.on_frame, number, encode(kind, term, directory, *fields))

    def append(
        self, number: int, term: int, commit: int, previous: int, previous_term: int, *terms: int
    ) -> None:
        """An append whose entries have these terms; index and term make the payload."""
        entries = [entry(previous + 1 + place, of) for place, of in enumerate(terms)]
        self.say(number, FrameKind.APPEND, term, commit, previous, previous_term, entries)

    def taken(self, kind: FrameKind | None = None) -> list[tuple[int, Fields]]:
        """Return, once, what was sent."""
        sent, self.links.sent = self.links.sent, []
        return [
            (n, _beside_folders(frame)) for n, frame in sent if kind is None or frame[0] == kind
        ]

    # Looking inside.

    @property
    def term(self) -> int:
        return self.node.context.term

    @property
    def terms(self) -> list[int]:
        """Terms of the entries, from index 1."""
        return [e[2] for e in self.node.context.journal[:]]

    @property
    def commit(self) -> int:
        assert self.node.context.core is not None
        return self.node.context.core.commit_index

    @property
    def role(self) -> str:
        return self.node.status().role

    def win(self) -> int:
        """Let the node be elected by all; returns its term."""
        for _ in range(100):
            self.settle(0.05)
            for number, fields in self.taken(FrameKind.PREVOTE_REQUEST):
                self.say(number, FrameKind.PREVOTE, self.term, fields[0], True)
            self.synced()
            if self.role == "candidate":
                break
        for number in self.others:
            self.say(number, FrameKind.VOTE, self.term)
        assert self.role == "leader"
        self.synced()
        return self.term

    def ack(self, number: int, index: int | None = None) -> None:
        """Acknowledge everything, or up to an index."""
        last = self.node.context.view.last if index is None else index
        self.say(number, FrameKind.ACK, self.term, last, 0, True)

    def lead(self) -> int:
        """Become elected, commit the no-op, and learn that it is committed."""
        term = self.win()
        for number in self.others:
            self.ack(number)
        assert ("leading", term) in self.heard.events
        self.taken()
        return term


def _beside_folders(frame: Fields) -> Fields:
    """A frame's fields.

    What an acknowledgement tells of its folder is not part of these tests, nor is which folder a
    memory names.
    """
    if frame[0] == FrameKind.ACK:
        return frame[3:6]
    if frame[0] == FrameKind.REMEMBER:
        return (frame[3], frame[4] if frame[3] else 0, *frame[5:7])
    return frame[3:]


def entry(index: int, term: int) -> tuple[bytes, int, int]:
    command = b"\0" + dumps((0, ((f"{index}/{term}".encode(),),)))
    return (command, index, term)


def formation(*members: tuple[int, bytes]) -> bytes:
    return encode_formation(CLUSTER, dict(members))
