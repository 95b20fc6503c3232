"""The interface of the quorum: `Quorum` for the owner's calls, `QuorumListener` for ours.

Rule: payloads, marks' data and digests are opaque bytes that come back as they were given.

Words: an *epoch* is Raft's term. An *index* numbers Raft entries; the owner sees it only beside
committed payloads and in marks. Offsets belong to the owner's ledger.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, Protocol

import msgspec


class NotLeaderError(Exception):
    """This node does not lead, or can't be sure that it does. `leader` is the known leader."""

    def __init__(self, leader: int | None, epoch: int) -> None:
        super().__init__(f"not the leader of epoch {epoch}; the leader is {leader}")
        self.leader = leader
        self.epoch = epoch


class NoRoomError(Exception):
    """The disk is almost full, so the node takes no proposals. The message says what to do."""


class VoterChangeRefusedError(Exception):
    """The voters can't be changed so, or not now. The message says why; nothing was appended."""

    def __init__(self, why: str, *, later: bool) -> None:
        super().__init__(why)
        self.later = later
        """Whether the same change may be possible later, as when the new voter has caught up."""


class TransferRefusedError(Exception):
    """The leadership can't be handed to that node, or not now. The message says why."""

    def __init__(self, why: str, *, later: bool) -> None:
        super().__init__(why)
        self.later = later
        """Whether it may be possible later, as when the node is linked."""


class QuorumStoppedError(Exception):
    """The node has stopped itself; the message says why and what to do."""


class ClusterGeneration(NamedTuple):
    """A beginning of the cluster: its first start, or a recovery from what survived.

    Nodes of two generations never talk to each other.
    """

    number: int
    """1 for the first start; each recovery adds 1."""
    id: bytes
    """Drawn by the recovery, so two recoveries that begin the same number differ; empty in 1."""


FIRST_GENERATION = ClusterGeneration(1, b"")
GENERATION_ID_BYTES = 16


class LeaderAndEpoch(NamedTuple):
    """The leader and the epoch that this node knows; `leader` is None while it knows none."""

    leader: int | None
    epoch: int


class Mark(NamedTuple):
    """A place in the sequence of committed entries, and what the owner needs to resume there."""

    index: int  # type: ignore[assignment]
    """The mark covers every entry up to and including this one."""
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


class VoterSet(msgspec.Struct, frozen=True):
    """The voters in force at one node, and since when."""

    voters: tuple[Voter, ...]
    index: int
    """The entry that names them; 0: the formation."""
    settled: bool
    """Whether they are known to be committed, and no other change waits here."""
    named: bool = False
    """Whether an entry names them, so that their addresses are what the log says."""
    moved: frozenset[int] = frozenset()
    """The node ids that the log names at another address than this node's configuration."""


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
    """The wire format of the link with it; 0: there is no link."""


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
    """A sentence for each repair in this incarnation."""
    refused: tuple[tuple[str, int], ...] = ()
    """How many messages of other controllers were refused, by reason."""


class PeerFile(NamedTuple):
    """A piece of a peer's file, and the size of the whole file."""

    total_size: int
    data: bytes


class QuorumListener(Protocol):
    """The owner's side. Every method is called on the loop and must not raise."""

    def on_committed(self, index: int, epoch: int, payloads: Sequence[bytes]) -> None:
        """Deliver the payloads of entry `index`, which is committed, and durable here.

        The calls come in the order of the indexes, once for each index in a process, and begin
        after the mark that `Quorum.start` returned. Entries without payloads (a new leader's no-op)
        are left out.
        """

    def on_leadership(self, epoch: int) -> None:
        """This node leads, and every entry committed before has been delivered."""

    def on_leadership_lost(self, epoch: int) -> None:
        """We no longer lead. Payloads proposed and not delivered have an unknown outcome."""

    def on_leader_changed(self, now: LeaderAndEpoch) -> None:
        """The leader or the epoch that this node knows has changed."""

    def on_catch_up(self, mark: Mark, source: int) -> None:
        """Catch up to `mark` from node `source`'s files: the leader lacks the entries we need.

        Call `Quorum.caught_up(mark)` once everything that the mark covers is durable here. A later
        call, with a later mark or another source, replaces this one. If ordinary entries reach the
        mark first, `on_catch_up_dropped` follows.
        """

    def on_catch_up_dropped(self) -> None:
        """The catch-up is not needed any more. Throw away what was fetched."""

    def on_caught_up(self, mark: Mark) -> None:
        """The mark is durable. The entries after it follow by `on_committed`."""

    def on_digest(self, node_id: int, digest: bytes, voter: bool) -> None:
        """A peer's newest digest or announcement arrived, or what it tells once (`Quorum.tell`).

        The first byte says which of the three.

        `voter`: False for an observer, also for one that has a voter's id and another folder.
        """

    def on_contacts(self, node_id: int, contacts: bytes) -> None:
        """A voter forwards contacts of brokers (`Quorum.send_contacts`)."""

    def on_confirmed(self, node_id: int, confirmed: bytes) -> None:
        """A voter answers what we forwarded (`Quorum.send_confirmed`)."""

    def on_stopped(self, reason: str) -> None:
        """The node stopped itself, for `reason`, a sentence: a broken disk, or a broken promise."""


class Quorum(Protocol):
    """Agreement on bytes among the voters."""

    def start(self) -> Mark | None:
        """Open the journal and join the peers. Blocks. Returns the mark to resume from (None: 0).

        Raises DamagedError, FolderInUseError, OSError.
        """

    def stop(self) -> None:
        """Give up leadership, sync and close. Blocks."""

    def propose(self, payload: bytes) -> None:
        """Append to the log, in the order of the calls.

        Payloads that wait while a sync is under way become one entry. `on_committed` delivers the
        payload, or its outcome is unknown after `on_leadership_lost`.

        Raises NotLeaderError, NoRoomError, QuorumStoppedError.
        """

    def change_voters(self, voters: Sequence[Voter], payload: bytes) -> None:
        """Append another set of voters and a payload, as one entry, behind what was proposed.

        The set differs from the one in force by one voter, or by one voter's address. It is in
        force when it is appended, and undone if its entry is cut (ADR 0081). The
        payload is delivered as one of `propose` is.

        Raises VoterChangeRefusedError, and what `propose` raises.
        """

    def refusal_of(self, voters: Sequence[Voter]) -> VoterChangeRefusedError | None:
        """Return why this leader may not append these voters now; None: it may."""

    def candidate(self, node_id: int) -> Voter | None:
        """Return the linked node of this id as it would vote; None: none is linked.

        Its host is empty if no address of it is known.
        """

    def unsent(self) -> int:
        """Return how many payloads were proposed and are in no entry yet."""

    def leader_and_epoch(self) -> LeaderAndEpoch:
        """Return the leader and the epoch that this node knows."""

    def read_index(self, on_ready: Callable[[bool], None]) -> None:
        """Call back True when the owner may answer a read, False when we do not lead.

        True means: after this call a majority confirmed that we lead, and everything that was
        committed at the call has been delivered.
        """

    def current_at(self) -> float | None:
        """Return the latest time such that everything acknowledged before it is delivered here.

        In monotonic seconds. None: not known since the start. `guard.freshness` says how.
        """

    def resign(self, reason: str) -> None:
        """Hand leadership to the most caught-up voter, or stop leading if no voter is linked."""

    def refusal_to_hand_over(self, node_id: int) -> TransferRefusedError | None:
        """Return why this leader can't hand the leadership to a node now; None: it can."""

    def hand_over(self, node_id: int, reason: str) -> None:
        """Begin to hand leadership to a voter, once it holds everything.

        If it has not taken over within an election timeout, this node goes on leading. Nothing
        happens if it is this node.

        Raises NotLeaderError, TransferRefusedError.
        """

    def compact(self, mark: Mark, on_done: Callable[[bool], None]) -> None:
        """Allow the journal to forget the entries before `mark.index`: the owner has them durable.

        The journal keeps `tail_bytes` for followers that lag.
        """

    def resumes_at(self) -> Mark | None:
        """Return the durable mark from which a start would resume now (None: the beginning)."""

    def caught_up(self, mark: Mark) -> None:
        """Say that everything up to `mark` is durable above; see `QuorumListener.on_catch_up`."""

    def out_of_reach(self, mark: Mark) -> None:
        """Say that a peer lacks the files for `mark` by now: ask the leader for its present mark.

        If that is another one, `on_catch_up` follows. Until then the owner may go on.
        """

    def set_digest(self, digest: bytes) -> None:
        """Send these bytes with every heartbeat from now on; at most 512."""

    def announce(self, data: bytes) -> None:
        """Send these bytes, too, with every heartbeat from now on; at most 512. Empty: nothing.

        Peers get them by `on_digest`. The first byte must differ from a digest's.
        """

    def tell(self, data: bytes) -> None:
        """Send these bytes once, with the next heartbeat, to the peers that are linked then.

        At most 512. Peers get them by `on_digest`. The first byte must differ from the others'. If
        bytes with the same first byte wait, they are replaced.
        """

    def send_contacts(self, node_id: int, contacts: bytes) -> bool:
        """Send these bytes to a voter, once; at most 60 KiB. Raises ValueError if there are more.

        False: they were not sent. There is no link, its queue is full, or the peer is of an earlier
        release. True says only that they wait in the link's queue.
        """

    def send_confirmed(self, node_id: int, confirmed: bytes) -> bool:
        """Answer a voter's contacts, as `send_contacts` sends."""

    def list_files(
        self,
        node_id: int,
        folder: str,
        on_reply: Callable[[Sequence[tuple[str, int]] | None], None],
    ) -> None:
        """Call back the names and sizes in a peer's shared folder; None: no answer."""

    def read_file(
        self,
        node_id: int,
        name: str,
        position: int,
        length: int,
        on_reply: Callable[[PeerFile | None], None],
    ) -> None:
        """Call back a piece of a file in a peer's shared folder, at most 1 MiB; None: no answer."""

    def scrub(self) -> Generator[int, None, None]:
        """Read the journal's closed segments and verify them; yields the bytes of each step.

        Raises DamagedError when a segment is not what was written.
        """

    def voters(self) -> tuple[Voter, ...]:
        """Return the voters that this node knows."""

    def voter_set(self) -> VoterSet:
        """Return the voters that this node knows, and whether they may still be undone."""

    def status(self) -> QuorumStatus:
        """Return the node's status."""
