"""The replicas that fetch the log without a vote, as the leader has seen them: brokers, mostly.

Rule: an observer is a node id with a directory id, and the newest fetch counts. At most 2,000 are
kept; the one that has been silent for longest gives way. One that is silent for five minutes is not
told any more (KIP-836).
"""

from collections import OrderedDict
from typing import Final, NamedTuple

_MOST: Final = 2_000
_SILENT_MS: Final = 300_000


class ReplicaKey(NamedTuple):
    """Which replica it is. A wiped disk has another directory id."""

    replica_id: int
    directory_id: bytes


class ReplicaProgress(NamedTuple):
    """How far a replica has come."""

    end_offset: int
    fetched_ms: int
    """When it last fetched, in ms since 1970."""
    caught_up_ms: int
    """When it last had everything; -1: it never had."""


class Observers:
    """The observers of one epoch."""

    def __init__(self) -> None:
        self._seen: OrderedDict[ReplicaKey, ReplicaProgress] = OrderedDict()

    def clear(self) -> None:
        """Forget all of them: another epoch begins."""
        self._seen.clear()

    def note(self, key: ReplicaKey, end_offset: int, log_end: int, now_ms: int) -> None:
        """A replica fetched from `end_offset`, while the log ended at `log_end`."""
        before = self._seen.pop(key, None)
        caught_up = (
            now_ms if end_offset >= log_end else -1 if before is None else before.caught_up_ms
        )
        self._seen[key] = ReplicaProgress(end_offset, now_ms, caught_up)
        if len(self._seen) > _MOST:
            self._seen.popitem(last=False)

    def at(self, now_ms: int) -> list[tuple[ReplicaKey, ReplicaProgress]]:
        """Return those that have fetched lately, by their ids."""
        since = now_ms - _SILENT_MS
        return sorted(item for item in self._seen.items() if item[1].fetched_ms >= since)
