"""Reads what the log says about coordination, and judges it: I21, in the order of the log.

Rule: this fold knows the rules of KIP-30's grants and nothing of the product's queues. At no moment
may a lock have two holders, but shared ones, or an election two leaders. Tokens of a resource only
grow. No entry outlives its session. Whatever is written under a fence names a present token. Where
anybody waits, somebody is granted.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from metadata.image.coordination import CoordinationImage
from metadata.records import (
    EndSessionRecord,
    EntryKind,
    EntryRecord,
    KeyRecord,
    Record,
    RemoveEntryRecord,
    SessionRecord,
)

GUARDED = "guarded/"
"""How the keys begin whose values are tokens: `guarded/lock/a`."""
Resource = tuple[int, str]


class CoordinationFold:
    """The state by the log, as far as the judgement needs it."""

    def __init__(self, began: CoordinationImage, fail: Callable[[str], None]) -> None:
        """`began`: the state at which the log begins. `fail` gets what is wrong."""
        self._fail = fail
        self._sessions = {session_id for session_id, _ in began.sessions.unordered_items()}
        self._entries: dict[Resource, dict[str, EntryRecord]] = {}
        self._tokens: Counter[Resource] = Counter()
        self.counts: Counter[str] = Counter()
        for entry in (entry for _, entry in began.entries.unordered_items()):
            resource = (entry.kind, entry.name)
            self._entries.setdefault(resource, {})[entry.id] = entry
            self._tokens[resource] = max(self._tokens[resource], entry.token)

    def take(self, records: Iterable[Record]) -> None:
        """Take the records that become visible together."""
        touched: set[Resource] = set()
        for record in records:
            match record:
                case SessionRecord():
                    self._sessions.add(record.session_id)
                case EndSessionRecord():
                    self._end(record)
                case EntryRecord():
                    touched.add((record.kind, record.name))
                    self._set(record)
                case RemoveEntryRecord():
                    touched.add((record.kind, record.name))
                    del self._entries[record.kind, record.name][record.id]
                case KeyRecord() if record.key.startswith(GUARDED):
                    self._write(record)
        for resource in sorted(touched):
            self._check(resource)

    def _end(self, record: EndSessionRecord) -> None:
        self.counts[f"ended {record.reason}"] += 1
        self._sessions.discard(record.session_id)
        for resource, entries in self._entries.items():
            if any(entry.session_id == record.session_id for entry in entries.values()):
                self._fail(f"I21: a session ends, and has an entry in {resource}")

    def _set(self, record: EntryRecord) -> None:
        resource = (record.kind, record.name)
        before = self._entries.setdefault(resource, {}).get(record.id)
        if record.session_id not in self._sessions:
            self._fail(f"I21: an entry of no session: {record}")
        if record.token >= 0 and (before is None or before.token != record.token):
            self.counts["grants"] += 1
            if record.token <= self._tokens[resource]:
                self._fail(f"I21: token {record.token} of {resource} is not above the last one")
            self._tokens[resource] = record.token
        self._entries[resource][record.id] = record

    def _write(self, record: KeyRecord) -> None:
        self.counts["guarded writes"] += 1
        kind, name = record.key.removeprefix(GUARDED).split("/")
        resource = (int(EntryKind[kind.upper()]), name)
        entries = self._entries.get(resource, {})
        if int(record.value) not in {entry.token for entry in entries.values()}:
            self._fail(f"I21: {record.key} was written under {record.value!r}, no present token")

    def _check(self, resource: Resource) -> None:
        entries = self._entries[resource].values()
        granted = [entry for entry in entries if entry.token >= 0]
        if resource[0] == EntryKind.GROUP or not entries:
            return
        if not granted:
            self._fail(f"I21: {len(entries)} wait for {resource}, and nobody has it")
        alone = resource[0] == EntryKind.ELECTION or not all(each.shared for each in granted)
        if alone and len(granted) > 1:
            self._fail(f"I21: {resource} is granted to {[each.id for each in granted]}")
