"""Reads access control entries and delegation tokens from Kafka's nodes.

Rule: an entry's id is zeros here; the controller draws it. A token's secret is in no node. Here it
is computed from the token's id and this cluster's key, so an owner asks for it once more.
"""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, TypeVar

import msgspec

from logberg.importing.import_plan import ImportPlan
from logberg.importing.kafka_clients import plain_name
from logberg.importing.znodes import Znode, ZnodeTree
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    DelegationTokenRecord,
)

_NO_ID: Final = bytes(16)
_TREES: Final = (
    ("/kafka-acl", AclPatternType.LITERAL),
    ("/kafka-acl-extended/prefixed", AclPatternType.PREFIXED),
)
_ONLY_FILTERS: Final = frozenset({"UNKNOWN", "ANY", "MATCH"})
Named = TypeVar("Named", bound=IntEnum)


class _Entry(msgspec.Struct, rename="camel"):
    principal: str
    permission_type: str
    operation: str
    host: str


class _AclNode(msgspec.Struct):
    acls: tuple[_Entry, ...]


class _TokenNode(msgspec.Struct, rename="camel"):
    owner: str
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int
    token_id: str
    renewers: tuple[str, ...] = ()
    token_requester: str | None = None


def read_acls(tree: ZnodeTree, plan: ImportPlan) -> None:
    """Take the entries of both trees, literal and prefixed."""
    for root, pattern in _TREES:
        for kind_node in tree.children(root):
            for node in tree.children(kind_node.path):
                if node.data:
                    decoded = plan.decoded(node, _AclNode)
                    if decoded is not None:
                        _take_entries(plan, node, kind_node.name, pattern, decoded)


def _take_entries(
    plan: ImportPlan, node: Znode, kind: str, pattern: AclPatternType, decoded: _AclNode
) -> None:
    try:
        plan.take(node, list(_entries(node.name, kind, pattern, decoded)))
    except ValueError as error:
        plan.refuse(node, str(error))


def _entries(
    name: str, kind: str, pattern: AclPatternType, decoded: _AclNode
) -> Iterator[AccessControlEntryRecord]:
    resource_type = _code(AclResourceType, kind)
    for entry in decoded.acls:
        yield AccessControlEntryRecord(
            _NO_ID,
            resource_type,
            name,
            int(pattern),
            entry.principal,
            entry.host,
            _code(AclOperation, entry.operation),
            _code(AclPermissionType, entry.permission_type),
        )


def _code(names: type[Named], text: str) -> int:
    """Return the code of a name in Kafka's spelling here, such as ClusterAction. ValueError."""
    word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).upper()
    if word not in names.__members__ or word in _ONLY_FILTERS:
        raise ValueError(f"{text[:50]!r} is no {names.__name__} of an entry")
    return int(names[word])


def read_tokens(tree: ZnodeTree, plan: ImportPlan) -> None:
    """Take the delegation tokens. Versions before 3 name no requester: it is the owner."""
    for node in tree.children("/delegation_token/tokens"):
        if not node.data:
            continue
        token = plan.decoded(node, _TokenNode)
        if token is None:
            continue
        try:
            owner = plain_name(token.owner)
            requester = (
                owner if token.token_requester is None else plain_name(token.token_requester)
            )
            renewers = tuple(plain_name(each) for each in token.renewers)
        except ValueError as error:
            plan.refuse(node, f"a principal isn't encoded as Kafka does it: {error}")
            continue
        taken = plan.take(
            node,
            [
                DelegationTokenRecord(
                    owner,
                    requester,
                    renewers,
                    token.issue_timestamp,
                    token.max_timestamp,
                    token.expiry_timestamp,
                    token.token_id,
                )
            ],
        )
        if taken:
            plan.note(node, "its secret is another one here: the owner asks for the token again")
