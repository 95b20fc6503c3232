"""Folds a log into who may do what, and finds changes whose principal had no right.

Invariant: the judge is the second one (`tests/reference/access.py`), which knows nothing of the
product. The state before a batch is folded from the records alone. Each batch is judged by the
state before it: so a rule that stands one offset earlier decides.
"""

from collections import Counter
from collections.abc import Collection
from typing import Any

from metadata.codec import decode_records
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    ConfigRecord,
    ConfigResourceType,
    PartitionRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.reference.access import Action, Entry, judge

Done = tuple[str, str, str]
"""Operation, kind and name of a resource."""
_CLUSTER = "kafka-cluster"


class RightsFold:
    """The entries and topics before each batch."""

    def __init__(self, super_users: Collection[str]) -> None:
        self.entries: dict[bytes, Entry] = {}
        self.names: dict[bytes, str] = {}
        self._super_users = super_users
        self._made_by: dict[bytes, bytes] = {}
        """By topic: the request that created it. Its partitions may be in later batches."""
        self.by_users: Counter[str] = Counter()
        """Changes of users who may not do everything, by operation."""

    def take(self, batch: Any) -> list[str]:
        """Return what was written without a right, and take the batch."""
        said, records = batch.header.provenance, decode_records(batch.records)
        who = said.on_behalf_of or said.principal
        wrong: list[str] = []
        if who.startswith("User:") and who not in self._super_users:
            for operation, kind, name in self._done(records, said.request_id):
                self.by_users[operation] += 1
                if not self.may(who, said.client_address, operation, kind, name):
                    at = batch.header.base_offset
                    wrong.append(f"{operation} of {kind} {name} by {who} at {at}")
        for record in records:
            self._apply(record, said.request_id)
        return wrong

    def may(self, principal: str, host: str, operation: str, kind: str, name: str) -> bool:
        """Return whether the entries allow it, by the resource or by the cluster."""
        asked = [Action(principal, host, operation, kind, name)]
        if kind != "CLUSTER":
            asked.append(Action(principal, host, operation, "CLUSTER", _CLUSTER))
        entries = self.entries.values()
        return any(
            judge(entries, action, self._super_users, allowed_without_entries=False).allowed
            for action in asked
        )

    def _done(self, records: Any, request_id: bytes) -> list[Done]:
        """Return what the records do."""
        found: list[Done] = []
        new = {each.topic_id for each in records if isinstance(each, TopicRecord)}
        removed = {
            self.names.get(each.topic_id, "")
            for each in records
            if isinstance(each, RemoveTopicRecord)
        }
        for record in records:
            if isinstance(record, TopicRecord):
                found.append(("CREATE", "TOPIC", record.name))
            elif isinstance(record, RemoveTopicRecord):
                found.append(("DELETE", "TOPIC", self.names[record.topic_id]))
            elif isinstance(record, PartitionRecord):
                own = self._made_by.get(record.topic_id) == request_id
                if record.topic_id not in new and not own:
                    found.append(("ALTER", "TOPIC", self.names[record.topic_id]))
            elif isinstance(record, ConfigRecord):
                of_topic = record.resource_type == ConfigResourceType.TOPIC
                if of_topic and record.resource_name not in removed:
                    found.append(("ALTER_CONFIGS", "TOPIC", record.resource_name))
            elif isinstance(record, AccessControlEntryRecord | RemoveAccessControlEntryRecord):
                found.append(("ALTER", "CLUSTER", _CLUSTER))
        return list(dict.fromkeys(found))

    def _apply(self, record: Any, request_id: bytes) -> None:
        if isinstance(record, AccessControlEntryRecord):
            self.entries[record.id] = entry_of(record)
        elif isinstance(record, RemoveAccessControlEntryRecord):
            del self.entries[record.id]
        elif isinstance(record, TopicRecord):
            self.names[record.topic_id] = record.name
            self._made_by[record.topic_id] = request_id


def entry_of(record: AccessControlEntryRecord) -> Entry:
    """Return an entry as the second judge reads it."""
    return Entry(
        AclResourceType(record.resource_type).name,
        record.resource_name,
        AclPatternType(record.pattern_type).name,
        record.principal,
        AclOperation(record.operation).name,
        AclPermissionType(record.permission_type).name,
        record.host,
    )
