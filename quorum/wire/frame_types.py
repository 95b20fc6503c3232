"""The frames between controllers, as types: the fields of each kind, in the order of the wire.

Rule: every frame begins with its kind, the sender's current term and the sender's directory. So a
receiver never counts an answer of another term, or of another disk under the same node id.

`quorum.wire.frames` reads and writes them, and derives from these classes what it accepts: another
field, or another type, is another wire format.
"""

from typing import NamedTuple

from quorum.journal import Entry


class AppendFrame(NamedTuple):
    """A leader's entries. Without entries it is a heartbeat."""

    kind: int
    term: int
    directory_id: bytes
    commit_index: int
    previous: int
    """Index of the entry before `entries`."""
    previous_term: int
    entries: tuple[Entry, ...]


class AckFrame(NamedTuple):
    """A follower's answer to an append or a snapshot."""

    kind: int
    term: int
    directory_id: bytes
    match: int
    """The follower's log is the leader's up to this index, durably; -1: this frame matches none."""
    next_index: int
    """The follower asks to go on from this index; 0: it does not ask."""
    counted: bool
    """Whether the follower's copy counts for the commit."""
    incarnation: bytes = b""
    """The follower's incarnation, which the leader remembers with `position`; empty: it tells none.

    Format 1 has neither of the two: there a `RememberFrame` goes ahead of the acknowledgement.
    """
    position: int = 0
    """The follower's journal is durable up to this position."""


class SnapshotFrame(NamedTuple):
    """A leader's manifest, for a follower that is too far behind for entries."""

    kind: int
    term: int
    directory_id: bytes
    commit_index: int
    manifest: bytes


class VoteRequestFrame(NamedTuple):
    """A candidate asks for a vote."""

    kind: int
    term: int
    directory_id: bytes
    last_index: int
    last_term: int
    for_transfer: bool
    """The leader itself asked the candidate to stand."""


class VoteFrame(NamedTuple):
    """A voter votes for the receiver."""

    kind: int
    term: int
    directory_id: bytes


class PrevoteRequestFrame(NamedTuple):
    """A node asks whether it would get a vote."""

    kind: int
    term: int
    directory_id: bytes
    round: int
    last_index: int
    last_term: int


class PrevoteFrame(NamedTuple):
    """The answer to a pre-vote request."""

    kind: int
    term: int
    directory_id: bytes
    round: int
    granted: bool


class TimeoutNowFrame(NamedTuple):
    """A leader asks its successor to stand at once."""

    kind: int
    term: int
    directory_id: bytes


class ProbeFrame(NamedTuple):
    """A node asks for the receiver's term: a leader for its reads, a damaged one for its repair."""

    kind: int
    term: int
    directory_id: bytes
    round: int


class ProbeAnswerFrame(NamedTuple):
    """The answer to a probe."""

    kind: int
    term: int
    directory_id: bytes
    round: int
    last_index: int
    counted: bool
    """Whether the sender may vote, so that its answer counts for a read."""


class FormationFrame(NamedTuple):
    """The formation in the sender's journal, which is durable there."""

    kind: int
    term: int
    directory_id: bytes
    formation: bytes


class DigestFrame(NamedTuple):
    """The owner's digest or announcement, with what `quorum.guard.freshness` needs."""

    kind: int
    term: int
    directory_id: bytes
    digest: bytes
    clock_us: int
    """The sender's clock, in microseconds."""
    echo_us: int
    """The newest reading of the receiver's clock that the sender has seen; -1: none."""
    delivered: int
    """The index up to which the sender has delivered."""
    age_us: int
    """How long ago the sender was surely the only leader; -1: it does not lead."""
    counted: bool
    """Whether the sender may vote, so that its echo counts."""


class ListFrame(NamedTuple):
    """A question for the names and sizes in a shared folder."""

    kind: int
    term: int
    directory_id: bytes
    number: int
    """Of the request."""
    folder: str


class ListedFrame(NamedTuple):
    """The answer to a `ListFrame`."""

    kind: int
    term: int
    directory_id: bytes
    number: int
    found: bool
    listing: tuple[tuple[str, int], ...]


class ReadFrame(NamedTuple):
    """A question for a piece of a file."""

    kind: int
    term: int
    directory_id: bytes
    number: int
    """Of the request."""
    name: str
    position: int
    length: int


class PieceFrame(NamedTuple):
    """The answer to a `ReadFrame`."""

    kind: int
    term: int
    directory_id: bytes
    number: int
    total_size: int
    """The size of the file; -1: there is no such file."""
    data: bytes


class RememberFrame(NamedTuple):
    """What the sender tells of itself, and remembers of the receiver. An empty id: nothing."""

    kind: int
    term: int
    directory_id: bytes
    incarnation: bytes
    position: int
    """The sender's journal is durable up to this position.

    Without an incarnation: `quorum.guard.memory.folder_number` of the folder that the frame is
    about. There it is 0 in earlier releases.
    """
    your_incarnation: bytes
    your_position: int
    your_directory_id: bytes = b""
    """The folder that it is about; empty: whichever the receiver has. Format 1 does not have it."""


class ContactsFrame(NamedTuple):
    """A standby's owner forwards contacts of brokers to the leader's owner. From format 3 on."""

    kind: int
    term: int
    directory_id: bytes
    contacts: bytes


class ConfirmedFrame(NamedTuple):
    """The answer of the leader's owner to a `ContactsFrame`. From format 3 on."""

    kind: int
    term: int
    directory_id: bytes
    confirmed: bytes


class VotersFrame(NamedTuple):
    """The newest voters of the sender's log, and since which index they are in force."""

    kind: int
    term: int
    directory_id: bytes
    index: int  # type: ignore[assignment]
    voters: bytes
    """Encoded by `quorum.membership.voters_entry`."""


AnswerFrame = ListedFrame | PieceFrame
Frame = (
    AppendFrame
    | AckFrame
    | SnapshotFrame
    | VoteRequestFrame
    | VoteFrame
    | PrevoteRequestFrame
    | PrevoteFrame
    | TimeoutNowFrame
    | ProbeFrame
    | ProbeAnswerFrame
    | FormationFrame
    | DigestFrame
    | ListFrame
    | ListedFrame
    | ReadFrame
    | PieceFrame
    | RememberFrame
    | ContactsFrame
    | ConfirmedFrame
    | VotersFrame
)
