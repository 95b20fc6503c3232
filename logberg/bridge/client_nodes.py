"""What this cluster's broker configs, quotas, users, ACLs, tokens and producer ids need in nodes.

Rule: what an import leaves in a node stays there: configs that Kafka encrypted, and keys that
nobody knows. A secret config of this cluster isn't written, since Kafka wants it encrypted with a
secret of its own.
"""

from base64 import b64encode
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final
from urllib.parse import quote

import msgspec

from logberg.bridge.node_changes import NodeChanges
from logberg.bridge.source_state import SourceState
from logberg.importing.source_error import SourceError
from metadata.configs.effective import MIN_ISR
from metadata.features import ELR_VERSION
from metadata.image import MetadataImage
from metadata.image.acls import content_of
from metadata.messages.scram import MECHANISMS
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    ClientQuotaRecord,
    ConfigRecord,
    ConfigResourceType,
    DelegationTokenRecord,
    EntityData,
    EntityKey,
    ProducerIdsRecord,
    UserScramCredentialRecord,
    entity_key,
)
from metadata.sealed_texts import block_of_text

_BROKER: Final = ConfigResourceType.BROKER
_BLOCK: Final = 1_000
"""Producer ids in a block."""
_MECHANISM_NAMES: Final = {int(code): name for name, code in MECHANISMS.items()}
_PARENTS: Final = {"user": "users", "client-id": "clients", "ip": "ips"}

AclPattern = tuple[int, int, str]
"""The codes of resource type and pattern type, and the name."""
Opened = Callable[[UserScramCredentialRecord], UserScramCredentialRecord]
"""Returns a credential with its keys in clear. Raises SourceError without the cluster key."""


def encoded_name(name: str | None) -> str:
    """Return a name as Kafka's Sanitizer writes it into a path; None is the default entity."""
    return "<default>" if name is None else quote(name, safe="").replace("~", "%7E")


def write_clients(
    image: MetadataImage, state: SourceState, changes: NodeChanges, opened: Opened
) -> None:
    """Collect what differs. Raises SourceError for a credential that can't be opened."""
    _write_broker_configs(image, state, changes)
    _write_entities(image, state, changes, opened)
    _write_acls(image, state, changes)
    _write_tokens(image, state, changes)
    _write_producer_ids(image, state, changes)


def _write_broker_configs(image: MetadataImage, state: SourceState, changes: NodeChanges) -> None:
    elr = image.features.levels.get(ELR_VERSION, 0) > 0
    taken: dict[str, set[str]] = {}
    for record in state.families["brokerConfigs"]:
        assert isinstance(record, ConfigRecord)
        if not (elr and record.name == MIN_ISR):
            taken.setdefault(record.resource_name, set()).add(record.name)
    for name in sorted({*taken, *image.configs.named(_BROKER)}):
        own = {
            key: value
            for key, value in image.configs.of(_BROKER, name).items()
            if block_of_text(value) is None and not (elr and key == MIN_ISR)
        }
        path = f"/config/brokers/{name or '<default>'}"
        left = {k: v for k, v in changes.config_of(path).items() if k not in taken.get(name, ())}
        if own or taken.get(name):
            changes.put_config(path, {**left, **own})


def _write_entities(
    image: MetadataImage, state: SourceState, changes: NodeChanges, opened: Opened
) -> None:
    """Quotas and credentials of a user stand in one node."""
    there: dict[EntityKey, dict[str, Any]] = {}
    here: dict[EntityKey, dict[str, Any]] = {}
    for record in state.families["quotas"]:
        assert isinstance(record, ClientQuotaRecord)
        there.setdefault(entity_key(record.entity), {})[record.key] = record.value
    for record in state.families["users"]:
        assert isinstance(record, UserScramCredentialRecord)
        there.setdefault(_user(record), {})[_MECHANISM_NAMES[record.mechanism]] = record
    for key in image.client_quotas.order:
        here.setdefault(key, {}).update(image.client_quotas.entities[key])
    for name_and_code in image.scram.order:
        sealed = image.scram.credentials[name_and_code]
        mechanism = _MECHANISM_NAMES[sealed.mechanism]
        known = there.get(_user(sealed), {}).get(mechanism)
        # Salts are drawn: a credential with the same salt is the same one, and needn't be opened.
        same = known is not None and (known.salt, known.iterations) == (
            sealed.salt,
            sealed.iterations,
        )
        here.setdefault(_user(sealed), {})[mechanism] = known if same else opened(sealed)
    for key in sorted({*there, *here}):
        before, after = there.get(key, {}), here.get(key, {})
        if before == after:
            continue
        path = _entity_path(key)
        left = {k: v for k, v in changes.config_of(path).items() if k not in before}
        changes.put_config(path, {**left, **{k: _entity_text(v) for k, v in after.items()}})


def _user(record: UserScramCredentialRecord) -> EntityKey:
    return entity_key((EntityData("user", record.name),))


def _entity_path(key: EntityKey) -> str:
    names = {kind: name[0] if name else None for kind, name in key}
    return "/config/" + "/".join(
        f"{_PARENTS[kind]}/{encoded_name(names[kind])}" for kind in _PARENTS if kind in names
    )


def _entity_text(value: float | UserScramCredentialRecord) -> str:
    if not isinstance(value, UserScramCredentialRecord):
        return str(int(value)) if float(value).is_integer() else repr(value)
    parts = (
        ("salt", value.salt),
        ("stored_key", value.stored_key),
        ("server_key", value.server_key),
    )
    said = ",".join(f"{name}={b64encode(data).decode()}" for name, data in parts)
    return f"{said},iterations={value.iterations}"


def _write_acls(image: MetadataImage, state: SourceState, changes: NodeChanges) -> None:
    there: dict[AclPattern, set[Any]] = {}
    here: dict[AclPattern, list[AccessControlEntryRecord]] = {}
    for record in state.families["acls"]:
        assert isinstance(record, AccessControlEntryRecord)
        there.setdefault(_pattern(record), set()).add(content_of(record))
    for id_ in image.acls.ids:
        entry = image.acls.entries[id_]
        here.setdefault(_pattern(entry), []).append(entry)
    for pattern in sorted({*there, *here}):
        entries = here.get(pattern, [])
        if there.get(pattern, set()) == {content_of(entry) for entry in entries}:
            continue
        path = _acl_path(pattern)
        if entries:
            changes.put_json(path, {"version": 1, "acls": [_acl(entry) for entry in entries]})
        else:
            changes.delete(path)
        _notify_acl(changes, pattern)


def _pattern(record: AccessControlEntryRecord) -> tuple[int, int, str]:
    return record.resource_type, record.pattern_type, record.resource_name


def _acl_path(pattern: tuple[int, int, str]) -> str:
    kind, pattern_type, name = pattern
    literal = pattern_type == AclPatternType.LITERAL
    root = "/kafka-acl" if literal else "/kafka-acl-extended/prefixed"
    return f"{root}/{_word(AclResourceType, kind)}/{name}"


def _notify_acl(changes: NodeChanges, pattern: tuple[int, int, str]) -> None:
    kind, pattern_type, name = AclResourceType(pattern[0]).name, pattern[1], pattern[2]
    if pattern_type == AclPatternType.LITERAL:
        changes.notify("/kafka-acl-changes/acl_changes_", f"{kind}:{name}".encode())
        return
    said = {"version": 1, "resourceType": kind, "name": name, "patternType": "PREFIXED"}
    changes.notify("/kafka-acl-extended-changes/acl_changes_", msgspec.json.encode(said))


def _acl(entry: AccessControlEntryRecord) -> dict[str, str]:
    return {
        "principal": entry.principal,
        "permissionType": _word(AclPermissionType, entry.permission_type),
        "operation": _word(AclOperation, entry.operation),
        "host": entry.host,
    }


def _word(codes: type[IntEnum], code: int) -> str:
    """Return a code's name in Kafka's spelling, such as ClusterAction."""
    return "".join(part.capitalize() for part in codes(code).name.split("_"))


def _write_tokens(image: MetadataImage, state: SourceState, changes: NodeChanges) -> None:
    there = {
        each.token_id: each
        for each in state.families["tokens"]
        if isinstance(each, DelegationTokenRecord)
    }
    for token_id in sorted({*there, *image.tokens.order}):
        token, path = image.tokens.tokens.get(token_id), f"/delegation_token/tokens/{token_id}"
        if token is None:
            changes.delete(path)
        elif token != there.get(token_id):
            changes.put_json(path, _token(token))


def _token(token: DelegationTokenRecord) -> dict[str, Any]:
    return {
        "version": 3,
        "owner": quote(token.owner, safe=""),
        "tokenRequester": quote(token.requester, safe=""),
        "renewers": [quote(each, safe="") for each in token.renewers],
        "issueTimestamp": token.issue_timestamp,
        "maxTimestamp": token.max_timestamp,
        "expiryTimestamp": token.expiration_timestamp,
        "tokenId": token.token_id,
    }


def _write_producer_ids(image: MetadataImage, state: SourceState, changes: NodeChanges) -> None:
    last = image.producer_ids.last
    there = max(
        (
            each.next_producer_id
            for each in state.families["producerIds"]
            if isinstance(each, ProducerIdsRecord)
        ),
        default=0,
    )
    if last is not None and last.next_producer_id > there:
        end = last.next_producer_id
        block = {"block_start": str(end - _BLOCK), "block_end": str(end - 1)}
        changes.put_json(
            "/latest_producer_id_block", {"version": 1, "broker": last.broker_id, **block}
        )


def without_key(_credential: UserScramCredentialRecord) -> UserScramCredentialRecord:
    """Refuse to open a credential. Raises SourceError."""
    raise SourceError(
        "SCRAM credentials are sealed here, and are written back in clear: give the cluster key "
        "with --cluster-key"
    )
