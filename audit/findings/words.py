"""The words of findings: lists that are not too long, times, and what sentences may be filled with.

Rule: whatever comes from the log is text that somebody else wrote. It is put in as it is; whoever
prints it escapes it.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Final

from audit.findings.events import KINDS

SENTENCE_FIELDS: Final[Mapping[str, str]] = {
    "actor": "for whom the first event was done: the user, also if a broker forwarded it",
    "actors": "all of them, the most frequent first",
    "principal": "who asked first",
    "address": "from where",
    "addresses": "all addresses",
    "method": "how the first caller authenticated",
    "operation": "the first operation",
    "reason": "the first reason",
    "subject": "what the first event is about",
    "subjects": "all subjects, without the word of their kind if it is the same for all",
    "subject_count": "how many subjects, such as `12 partitions`",
    "grantee": "who gets or loses the right of the first event",
    "grantees": "all of them",
    "what": "the first event in words, such as an entry or an error's code",
    "details": "all of them",
    "kinds": "the kinds of events, with their numbers",
    "count": "how many events",
    "times": "the same as `once`, `twice`, `3 times`",
    "amount": "the sum of their amounts, such as refused items",
    "longest": "the longest time that it lasted, or the largest difference of clocks",
    "first": "the time of the first event",
    "last": "the time of the last one",
}
"""What a rule's sentence may name in braces."""

NOBODY: Final = "nobody"
_SHOWN: Final = 5
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def times(number: int) -> str:
    """Return `once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def without_kind(subjects: Mapping[str, int]) -> dict[str, int]:
    """Return subjects without the word of their kind, if all are of one kind."""
    kinds = {subject.partition(":")[0] for subject in subjects}
    if len(kinds) != 1:
        return dict(subjects)
    return {subject.partition(":")[2] or subject: n for subject, n in subjects.items()}


def listed(values: Mapping[str, int], total: int) -> str:
    """Return names with the most frequent first, and how many others there are.

    `total`: how many names there are, of which `values` may hold fewer.
    """
    names = sorted((name for name in values if name), key=lambda name: (-values[name], name))
    others = total - ("" in values) - min(len(names), _SHOWN)
    if not names:
        return NOBODY
    shown = names[:_SHOWN]
    if others:
        return f"{', '.join(shown)} and {others} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def kinds_in_words(kinds: Mapping[str, int]) -> str:
    """Return such as `2 ACLs added, 1 credential set`; the last word of a kind is its verb."""
    return ", ".join(_kind_in_words(kind, kinds[kind]) for kind in KINDS if kind in kinds)


def _kind_in_words(kind: str, number: int) -> str:
    noun, _, verb = _KIND_WORDS[kind].rpartition(" ")
    return f"{number} {noun}{'' if number == 1 else 's'} {verb}"


def subjects_counted(subjects: Mapping[str, int], total: int) -> str:
    """Return such as `12 partitions`; the noun is that of the first by name."""
    kind = min(subjects, default="").partition(":")[0] or "thing"
    return f"{total} {kind}{'' if total == 1 else 's'}"


def length(ms: int) -> str:
    """Return a length of time, rounded down: `2 h 5 min`."""
    parts = []
    for size, unit in _UNITS:
        if ms >= size:
            parts.append(f"{ms // size} {unit}")
            ms %= size
    return " ".join(parts[:2]) or f"{ms} ms"


def moment(time_ms: int) -> str:
    """Return a time in UTC, to the second."""
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    at = epoch + dt.timedelta(milliseconds=time_ms)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


_KIND_WORDS: Final = {kind: kind.replace("_", " ") for kind in KINDS} | {
    "acl_added": "ACL added",
    "acl_removed": "ACL removed",
    "user_set": "credential set",
    "user_removed": "credential removed",
    "unclean_elected": "unclean leader elected",
    "unclean_allowed": "rule of unclean elections set",
    "voters_set": "change of voters made",
    "key_set": "cluster key set",
    "refused": "request refused",
    "activity": "caller seen",
}
