"""What `quorum` shows upward, and what it asks of whoever stands above it.

Rule: agreement on opaque bytes. Nothing here knows a record, a batch or a chain: proposals,
marks and digests are bytes that come back as they were given.

The words: an *epoch* is Raft's term, an *index* numbers Raft entries and is seen upward only
beside committed payloads; offsets are the ledger's.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, Protocol

import msgspec


class NotLeaderError(Exception):
    """This node does not lead, or can't promise it now. `leader` says who does, if known."""

    def __init__(self, leader: int | None, epoch: int) -> None:
        super().__init__(f"not the leader of epoch {epoch}; the leader is {leader}")
        self.leader = leader
        self.epoch = epoch


class NoRoomError(Exception):
    """The disk is almost full: nothing is proposed until there is room. The message says so."""


class QuorumStoppedError(Exception):
    """The node has stopped itself; the message says why and what to do."""


class LeaderAndEpoch(NamedTuple):
    """Who leads, as far as this node knows; `leader` is None while nobody is known to."""

    leader: int | None
    epoch: int


class Mark(NamedTuple):
    """A place in the sequence of committed entries, and what the owner needs to resume there."""

    index: int  # type: ignore[assignment]
    """Every entry up to and including this one is behind the mark."""
    epoch: int
    """The epoch of the entry at `index`."""
    data: bytes
    """Opaque (the controller writes log end and chain head)."""


class Voter(msgspec.Struct, frozen=True):
    """One member of the quorum. A wiped disk has another directory id: it is another voter."""

    node_id: int
    directory_id: bytes
    host: str
    port: int


class ReplicaState(msgspec.Struct, frozen=True):
    """What the leader knows of one replica."""

    node_id: int
    directory_id: bytes
    match_index: int
    """Highest index known to be durable there; 0 unknown."""
    last_contact_s: float
    """Seconds since its last answer; -1 never in this epoch."""
    is_voter: bool
    wire_format: int = 0
    """What the link with it speaks; 0: there is none."""


class QuorumStatus(msgspec.Struct, frozen=True):
    """For `logberg quorum status` and metrics."""

    node_id: int
    directory_id: bytes
    role: str
    """leader, follower, candidate, observer or damaged."""
    leader: int | None
    epoch: int
    commit_index: int
    applied_index: int
    last_index: int
    durable_index: int
    journal_bytes: int
    replicas: tuple[ReplicaState, ...]
    note: str
    """A sentence when the node is held back (forming, damaged, catching up), else empty."""
    damages: int = 0
    """How often the journal was found damaged in this incarnation."""
    repairs: tuple[str, ...] = ()
    """A sentence for each time that it was repaired."""
    refused: tuple[tuple[str, int], ...] = ()
    """What other controllers sent and was refused: how often, by reason."""


class PeerFile(NamedTuple):
    """A piece of a file of a peer."""

    total_size: int
    data: bytes


class QuorumListener(Protocol):
    """Who stands above; every call is made on the loop and must not raise."""

    def on_committed(self, index: int, epoch: int, payloads: Sequence[bytes]) -> None:
        """Entry `index` is committed, and durable here: its payloads, as they were proposed.

        In order, each index once in a process's life, beginning behind the mark handed over at
        `on_start`. Indexes of entries that are not ours (a leader's no-op) are left out.
        """

    def on_leadership(self, epoch: int) -> None:
        """We lead, and every entry committed before has been delivered."""

    def on_leadership_lost(self, epoch: int) -> None:
        """We no longer lead: what was proposed and not delivered has an unknown outcome."""

    def on_leader_changed(self, now: LeaderAndEpoch) -> None:
        """The known leader or the epoch changed."""

    def on_catch_up(self, mark: Mark, source: int) -> None:
        """We are too far behind for entries: catch up to `mark` from node `source`'s files.

        Answer with `Quorum.caught_up(mark)` when all that is behind the mark is durable here.
        May be called again with a later mark or another source, which replaces the first; if
        ordinary entries overtake it, `on_catch_up_dropped` follows.
        """

    def on_catch_up_dropped(self) -> None:
        """The catch-up asked for is not needed any more; throw away what was fetched."""

    def on_caught_up(self, mark: Mark) -> None:
        """The mark is durable; entries behind it follow by `on_committed`."""

    def on_digest(self, node_id: int, digest: bytes) -> None:
        """A peer's newest digest arrived, or its announcement: the first byte says which."""

    def on_stopped(self, reason: str) -> None:
        """The quorum stopped itself (a broken disk, a broken promise); `reason` is a sentence."""


class Quorum(Protocol):
    """Agreement on bytes among the voters."""

    def start(self) -> Mark | None:
        """Open the journal, join the peers; return the mark to resume from (None: from 0).

        Raises DamagedError, FolderInUseError, OSError.
        """

    def stop(self) -> None:
        """Leave in order: give up leadership, sync, close."""

    def propose(self, payload: bytes) -> None:
        """Append to the log, in the order of the calls.

        Raises NotLeaderError, NoRoomError, QuorumStoppedError.

        What waits while a sync is under way becomes one entry. The outcome is seen at
        `on_committed`, or unknown after `on_leadership_lost`.
        """

    def leader_and_epoch(self) -> LeaderAndEpoch:
        """Who leads, as far as we know."""

    def read_index(self, on_ready: Callable[[bool], None]) -> None:
        """Call back True when it is safe to read what was delivered; False when we do not lead.

        True: a majority has confirmed, after this call, that we lead, and all that was committed
        at the call has been delivered.
        """

    def current_at(self) -> float | None:
        """The latest moment (monotonic seconds) whose every acknowledgement is delivered here.

        On a leader from when a majority last confirmed it. None: not known since the start.
        """

    def resign(self, reason: str) -> None:
        """Stop leading; to the most caught-up voter where one is there."""

    def compact(self, mark: Mark, on_done: Callable[[bool], None]) -> None:
        """Forget entries before `mark.index`: what is behind the mark is durable above.

        The journal keeps what the settings say for followers that lag.
        """

    def caught_up(self, mark: Mark) -> None:
        """See `QuorumListener.on_catch_up`."""

    def set_digest(self, digest: bytes) -> None:
        """Send this with the heartbeats from now on; at most 512 bytes."""

    def announce(self, data: bytes) -> None:
        """Send this, too, with the heartbeats from now on; at most 512 bytes, empty: nothing.

        It arrives by `on_digest`. Its first byte must differ from a digest's.
        """

    def list_files(
        self,
        node_id: int,
        folder: str,
        on_reply: Callable[[Sequence[tuple[str, int]] | None], None],
    ) -> None:
        """Names and sizes in a shared folder of a peer; None when there is no answer."""

    def read_file(
        self,
        node_id: int,
        name: str,
        position: int,
        length: int,
        on_reply: Callable[[PeerFile | None], None],
    ) -> None:
        """A piece of a file in a shared folder of a peer; at most 1 MiB; None: no answer."""

    def scrub(self) -> Generator[int, None, None]:
        """Read through what lies closed of the journal; yields the bytes of each step.

        Raises DamagedError when it is not what was written.
        """

    def voters(self) -> tuple[Voter, ...]:
        """The voters that this node knows of."""

    def status(self) -> QuorumStatus:
        """How things stand."""
