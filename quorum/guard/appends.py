"""What a follower makes of an append before the core sees it.

Rule: the core truncates on every append that it is given, conflict or not, so it is given only
what we don't have. What remains is one of four things: news (`Append`), nothing new (`Matched`),
a hole or a mismatch (`Missing`), or a conflict with what was committed, which no sound leader
sends and which stops the node (`Conflict`).

Why not truncate tentatively inside the journal: the core commits up to the last index it has,
and a tail that was kept would commit entries that diverge.
"""

from typing import NamedTuple

from quorum.journal import Entry, LogView


class Append(NamedTuple):
    """Give these to the core; they follow our entry `previous` or replace what is behind it."""

    previous: int
    previous_term: int
    entries: tuple[Entry, ...]


class Matched(NamedTuple):
    """Nothing is new: our log is the sender's up to `match`. What follows in ours is left alone."""

    match: int


class Missing(NamedTuple):
    """We can't judge it. The sender goes on from `next_index`."""

    next_index: int
    is_gap: bool


class Conflict(NamedTuple):
    """It contradicts what is committed."""

    at: int


Judgement = Append | Matched | Missing | Conflict


def judge(
    log: LogView, commit_index: int, previous: int, previous_term: int, entries: tuple[Entry, ...]
) -> Judgement:
    """Judge an append against our log. `commit_index` is ours."""
    first, last = log.first, log.last
    commit_index = min(commit_index, last)
    if previous < first:
        # Entries before the first that we keep are committed, hence equal. Judge only the rest.
        newest = previous + len(entries)
        if newest <= first:
            return Matched(newest)
        entries = entries[first - previous :]
        previous, previous_term = first, log.term_at(first)
    if previous > last:
        return Missing(last + 1, is_gap=True)
    if log.term_at(previous) != previous_term:
        if previous <= commit_index:
            return Conflict(previous)
        return Missing(log.first_of_term_at(previous, commit_index + 1), is_gap=False)
    skipped = 0
    for entry in entries:
        if entry[1] > last:
            break
        if log.term_at(entry[1]) != entry[2]:
            if entry[1] <= commit_index:
                return Conflict(entry[1])
            break
        skipped += 1
    if skipped:
        previous, previous_term = entries[skipped - 1][1], entries[skipped - 1][2]
    if skipped == len(entries):
        return Matched(previous)
    return Append(previous, previous_term, entries[skipped:])
