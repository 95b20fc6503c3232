"""Reads configs of brokers, quotas, and SCRAM credentials from Kafka's nodes below /config.

Rule: quotas and credentials of a user stand in one node, and each is taken by itself. Names are
percent-encoded (Kafka's Sanitizer); the literal `<default>` is the default of its type.
"""

import binascii
import math
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from logberg.importing.import_plan import ImportPlan
from logberg.importing.kafka_topics import read_configs
from logberg.importing.znodes import Znode, ZnodeTree
from metadata.messages.scram import MECHANISMS
from metadata.quota_rules import CLIENT_ID, CLIENT_KEYS, IP, IP_KEYS, USER
from metadata.records import (
    ClientQuotaRecord,
    ConfigRecord,
    ConfigResourceType,
    EntityData,
    Record,
    UserScramCredentialRecord,
)

DEFAULT: Final = "<default>"
_SCRAM_PARTS: Final = frozenset({"salt", "stored_key", "server_key", "iterations"})


def plain_name(text: str) -> str:
    """Return a name that Kafka encoded for a path. Raises ValueError."""
    return unquote(text, errors="strict")


def read_broker_configs(tree: ZnodeTree, plan: ImportPlan) -> None:
    """Take the configs of brokers and of all brokers."""
    kind = int(ConfigResourceType.BROKER)
    for node in tree.children("/config/brokers"):
        if node.data:
            configs = read_configs(node, plan)
            name = "" if node.name == DEFAULT else node.name
            if configs:
                plan.take(
                    node,
                    [ConfigRecord(kind, name, key, text) for key, text in sorted(configs.items())],
                )


def read_quotas_and_users(tree: ZnodeTree, plan: ImportPlan) -> None:
    """Take quotas of users, of client ids, of both and of addresses, and credentials of users."""
    for node, kinds in _entity_nodes(tree):
        if not node.data:
            continue
        try:
            entity = _entity(node, kinds)
        except ValueError as error:
            plan.refuse(node, f"its name isn't encoded as Kafka does it: {error}")
            continue
        malformed = len(plan.malformed)
        records = list(_records(node, entity, read_configs(node, plan), plan))
        if len(plan.malformed) == malformed and records:
            plan.take(node, records)


def _entity_nodes(tree: ZnodeTree) -> Iterator[tuple[Znode, tuple[str, ...]]]:
    """Yield the nodes of entities, each with the types of its names."""
    for user in tree.children("/config/users"):
        yield user, (USER,)
        for client in tree.children(f"{user.path}/clients"):
            yield client, (USER, CLIENT_ID)
    for client in tree.children("/config/clients"):
        yield client, (CLIENT_ID,)
    for address in tree.children("/config/ips"):
        yield address, (IP,)


def _entity(node: Znode, kinds: tuple[str, ...]) -> tuple[EntityData, ...]:
    names = node.path.split("/")[3::2]
    return tuple(
        EntityData(kind, None if name == DEFAULT else plain_name(name))
        for kind, name in zip(kinds, names, strict=True)
    )


def _records(
    node: Znode, entity: tuple[EntityData, ...], configs: Mapping[str, str], plan: ImportPlan
) -> Iterator[Record]:
    of_user = len(entity) == 1 and entity[0].entity_type == USER
    known = IP_KEYS if entity[0].entity_type == IP else CLIENT_KEYS
    for key, text in sorted(configs.items()):
        try:
            if key in MECHANISMS and of_user and entity[0].entity_name is not None:
                yield _credential(entity[0].entity_name, key, text)
            elif key in known:
                yield ClientQuotaRecord(entity, key, _quota(text), remove=False)
            else:
                plan.leave(node, f"{key}: neither a quota nor a credential of this entity")
        except (ValueError, binascii.Error) as error:
            plan.refuse(node, f"{key}: {error}")


def _quota(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"a quota can't be {text[:50]}")
    return value


def _credential(user: str, mechanism: str, text: str) -> UserScramCredentialRecord:
    """Return the record of salt=…,stored_key=…,server_key=…,iterations=…. Raises ValueError.

    The message never shows the text, which is a secret.
    """
    parts = [part.partition("=") for part in text.split(",")]
    values = {name: value for name, _, value in parts}
    if len(parts) != len(_SCRAM_PARTS) or values.keys() != _SCRAM_PARTS:
        raise ValueError("a credential has salt, stored_key, server_key and iterations")
    salt, stored, server = (
        b64decode(values[name], validate=True) for name in ("salt", "stored_key", "server_key")
    )
    code = MECHANISMS[mechanism]
    size = 64 if mechanism == "SCRAM-SHA-512" else 32
    if len(stored) != size or len(server) != size:
        raise ValueError(f"its keys have {size} bytes each")
    if not values["iterations"].isdecimal():
        raise ValueError("its iterations are no number")
    return UserScramCredentialRecord(
        user, int(code), salt, stored, server, int(values["iterations"][:20])
    )
