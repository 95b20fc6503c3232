"""`judge`, compared with a model of the log after Raft's paper."""

from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.guard.appends import Append, Conflict, Matched, Missing, judge
from quorum.journal import Entry, LogView
from quorum.journal.journal import RaftJournal
from quorum.journal.state import JournalState

Log = list[int]
"""The term of each entry, index 1 first."""


def view(terms: Log, first: int = 1) -> LogView:
    state = JournalState()
    state.entries = [(b"c", i, t) for i, t in enumerate(terms, 1) if i >= first]

    def entry(index: int) -> Entry | None:
        place = index - first
        return state.entries[place] if 0 <= place < len(state.entries) else None

    journal = SimpleNamespace(
        first_index=state.first_index, last_index=state.last_index, entry=entry
    )
    return LogView(cast("RaftJournal", journal))


def entries(previous: int, terms: list[int]) -> tuple[Entry, ...]:
    return tuple((b"c", previous + 1 + place, term) for place, term in enumerate(terms))


@st.composite
def histories(draw: st.DrawFn) -> tuple[Log, Log, int, int, int, int]:
    """A follower's log and a leader's that share a committed prefix, and a window to send.

    Where two logs have the same index and term, all before is equal: Raft's own promise.
    """
    shared = sorted(draw(st.lists(st.integers(0, 3), min_size=0, max_size=6)))
    log = [0, *shared]
    top = log[-1]
    mine = log + sorted(draw(st.lists(st.sampled_from([top + 1, top + 3]), max_size=4)))
    theirs = log + sorted(draw(st.lists(st.sampled_from([top + 2, top + 4]), max_size=5)))
    commit = draw(st.integers(1, len(log)))
    previous = draw(st.integers(1, len(theirs)))
    count = draw(st.integers(0, len(theirs) - previous))
    first = draw(st.integers(1, commit))
    return mine, theirs, commit, previous, count, first


@pytest.mark.slow
@settings(max_examples=400)
@given(histories())
def test_a_log_becomes_what_raft_says_and_never_less(
    history: tuple[Log, Log, int, int, int, int],
) -> None:
    mine, theirs, commit, previous, count, first = history
    sent = theirs[previous : previous + count]
    verdict = judge(
        view(mine, first), commit, previous, theirs[previous - 1], entries(previous, sent)
    )
    agrees = previous < first or (
        previous <= len(mine) and mine[previous - 1] == theirs[previous - 1]
    )
    if not agrees:
        assert isinstance(verdict, Missing)
        assert commit < verdict.next_index <= len(mine) + 1
        return
    end = previous + count
    same = mine[:end] == theirs[:end]
    if same:
        assert isinstance(verdict, Matched)
        assert verdict.match == end
    else:
        assert isinstance(verdict, Append)
        after = mine[: verdict.previous] + [entry[2] for entry in verdict.entries]
        assert after == theirs[:end]
        assert verdict.previous >= commit
        # Nothing that agrees is truncated: what is given is new from its first entry on.
        next_of_mine = mine[verdict.previous : verdict.previous + 1]
        assert next_of_mine != [verdict.entries[0][2]]


def test_a_contradiction_of_what_is_committed_is_told() -> None:
    log = view([0, 1, 1, 1])
    assert judge(log, 3, 2, 2, ()) == Conflict(2)
    assert judge(log, 3, 1, 0, entries(1, [2])) == Conflict(2)
    assert judge(log, 3, 3, 1, entries(3, [2])) == Append(3, 1, entries(3, [2]))


def test_what_was_compacted_away_counts_as_matched() -> None:
    log = view([0, 1, 1, 1, 1, 2], first=4)
    assert judge(log, 5, 1, 0, entries(1, [1])) == Matched(2)
    assert judge(log, 5, 1, 0, entries(1, [1, 1, 1])) == Matched(4)
    assert judge(log, 5, 1, 0, entries(1, [1, 1, 1, 1, 2, 2])) == Append(6, 2, entries(6, [2]))
