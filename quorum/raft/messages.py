"""The messages between the guard and the Raft core.

The core is PySyncObj, which speaks in dicts. `quorum.raft.dicts` translates in both directions, so
outside this room a message always has one of these types. A message does not name its sender or
receiver; the calls that pass it do.
"""

from collections.abc import Sequence
from typing import NamedTuple

from quorum.journal import Entry


class AppendEntries(NamedTuple):
    """A leader's entries, to be placed after `previous`.

    Without entries the leader asks whether `previous` matches.
    """

    term: int
    commit_index: int
    previous: int
    """Index of the entry before `entries`."""
    previous_term: int
    entries: Sequence[Entry]


class Heartbeat(NamedTuple):
    """A leader is alive. The core resets its election timer and does not touch its log."""

    term: int
    commit_index: int


class InstallSnapshot(NamedTuple):
    """A leader's manifest: the log begins anew with the two entries that it names."""

    term: int
    commit_index: int
    manifest: bytes


class AppendReply(NamedTuple):
    """A follower's answer to `AppendEntries`."""

    next_index: int
    """Where the leader goes on sending."""
    success: bool
    """The follower holds every entry before `next_index`."""
    reset: bool
    """The leader goes back, or forward, to `next_index`."""


class RequestVote(NamedTuple):
    """A candidate asks for a vote."""

    term: int
    last_index: int
    last_term: int


class VoteGranted(NamedTuple):
    """A voter grants its vote."""

    term: int


class TimeoutNow(NamedTuple):
    """Begin an election at once."""

    term: int


class Forward(NamedTuple):
    """The core tries to forward a command to the leader. The guard refuses it."""


ToCore = (
    AppendEntries
    | Heartbeat
    | InstallSnapshot
    | AppendReply
    | RequestVote
    | VoteGranted
    | TimeoutNow
)
FromCore = AppendEntries | InstallSnapshot | AppendReply | RequestVote | VoteGranted | Forward
