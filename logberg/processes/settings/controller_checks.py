"""What is wrong with the settings of a controller.

Rule: the whole file is checked before anything starts, and all problems are reported together.
"""

from collections.abc import Iterable
from typing import Final

from logberg.processes.settings.controller_settings import (
    ArchiveSettings,
    BackupSettings,
    ControllerSettings,
    Delegation,
)
from logberg.processes.settings.coordination_settings import check_coordination
from logberg.processes.settings.kafka_settings import kafka_problems
from logberg.processes.settings.shared_settings import (
    access_problems,
    address_problems,
    kafka_listener_problems,
    log_level_problems,
)
from logberg.processes.settings.tracing_settings import tracing_problems
from logberg.processes.settings.witness_settings import witness_problems
from metadata.configs.checks import own_problems
from metadata.features import wrong_first_levels
from metadata.plain_text import control_character
from metadata.pseudonyms import pattern_problem

_BACKUP_EVERY_LEAST_MS: Final = 1_000
_ARCHIVE_EVERY_LEAST_MS: Final = 100
_SETTINGS_OF_THEIR_OWN: Final = {
    "num.partitions": "default_partitions",
    "default.replication.factor": "default_replication_factor",
    "delete.topic.enable": "topic_deletion",
}
"""Kafka's keys that `configs` can't set."""


def check_controller(settings: ControllerSettings) -> list[str]:
    """Say what is wrong with a controller's settings, a sentence each."""
    found = []
    ids = [peer.node_id for peer in settings.controllers]
    if settings.node_id not in ids:
        found.append(
            f"node_id is {settings.node_id}, but controllers lists {sorted(ids)}: "
            "every controller must be listed, this one too."
        )
    if len(set(ids)) != len(ids):
        found.append(f"controllers lists a node_id twice: {sorted(ids)}.")
    if settings.controllers and all(peer.role == "observer" for peer in settings.controllers):
        found.append("controllers lists observers only: leave role out for those that shall vote.")
    if any(node_id < 0 for node_id in ids):
        found.append("a node_id is negative; use 0 or more.")
    if not settings.cluster_id:
        found.append("cluster_id is empty; generate one with: logberg cluster-id")
    if len(settings.cluster_id) > 64:
        found.append("cluster_id is longer than 64 characters.")
    if settings.heartbeat_ms * 2 > settings.session_ms:
        found.append(
            f"heartbeat_ms is {settings.heartbeat_ms}; it must be at most half of session_ms "
            f"({settings.session_ms}), or one lost heartbeat fences a broker."
        )
    found += [
        f"{key} is {value}; it must be {least} or more."
        for key, value, least in (
            ("partitions_per_request_max", settings.partitions_per_request_max, 1),
            ("partition_mutations_per_s", settings.partition_mutations_per_s, 0),
            ("partition_mutations_burst", settings.partition_mutations_burst, 1),
            ("min_insync_replicas", settings.min_insync_replicas, 1),
            ("unclean_leader_election_ms", settings.unclean_leader_election_ms, 0),
            ("leader_imbalance_check_ms", settings.leader_imbalance_check_ms, 1),
            ("default_partitions", settings.default_partitions, 1),
            ("default_replication_factor", settings.default_replication_factor, 1),
            ("token_max_lifetime_ms", settings.token_max_lifetime_ms, 1),
            ("token_period_ms", settings.token_period_ms, 1),
            ("signed_head_ms", settings.signed_head_ms, 0),
            ("attempts_interval_ms", settings.attempts_interval_ms, 100),
            ("attempts_bytes_per_minute", settings.attempts_bytes_per_minute, 32_768),
            ("slow_request_ms", settings.slow_request_ms, 0),
            ("slow_sync_ms", settings.slow_sync_ms, 0),
        )
        if value < least
    ]
    if settings.coordination is not None:
        found += check_coordination(settings.coordination)
    found += _kafka_problems(settings)
    found += _backup_problems(settings.backups)
    found += _archive_problems(settings.archive)
    found += tracing_problems(settings.tracing)
    found += witness_problems(settings.witnesses, settings.signed_head_ms)
    levels = wrong_first_levels(settings.initial_features)
    if levels:
        found.append(f"initial_features: {levels}.")
    found += [f"configs: {problem}" for problem in own_problems(settings.configs)]
    found += [
        f"configs: {key} has no effect there; write the setting {name}."
        for key, name in _SETTINGS_OF_THEIR_OWN.items()
        if key in settings.configs
    ]
    found += log_level_problems(settings.log_level)
    found += address_problems([peer.quorum for peer in settings.controllers], "controllers.quorum")
    found += [
        f"controllers.http is {peer.http!r}; use a URL such as https://127.0.0.1:19191."
        for peer in settings.controllers
        if not peer.http.startswith(("http://", "https://"))
    ]
    found += [
        f"tokens: the principal {token.principal!r} is not valid; use User:NAME or "
        "Broker:NUMBER, without control characters."
        for token in settings.tokens
        if control_character(token.principal) or not token.principal.partition(":")[2]
    ]
    found += access_problems(settings.authorization, settings.super_users)
    found += _delegation_problems(settings.delegations)
    found += _pseudonym_problems(settings)
    found += [
        f"tokens: the sha256 of {token.principal} is not 64 hexadecimal digits."
        for token in settings.tokens
        if len(token.sha256) != 64 or not _is_hex(token.sha256)
    ]
    return found


def _pseudonym_problems(settings: ControllerSettings) -> list[str]:
    problems = filter(None, map(pattern_problem, settings.pseudonyms))
    found = [f"pseudonyms: {problem}." for problem in problems]
    if settings.pseudonyms and settings.kafka is not None:
        found.append(
            "pseudonyms and kafka exclude each other: Kafka's own brokers compare names with the "
            "entries about pseudonyms, so an entry that denies something would not count there."
        )
    return found


def _backup_problems(backups: BackupSettings | None) -> list[str]:
    if backups is None:
        return []
    rows = (("every_ms", backups.every_ms, _BACKUP_EVERY_LEAST_MS), ("keep", backups.keep, 1))
    return [*_too_small("backups", rows), *_place_problems("backups.where", backups.where)]


def _archive_problems(archive: ArchiveSettings | None) -> list[str]:
    if archive is None:
        return []
    rows = (
        ("keep_bytes", archive.keep_bytes, 0),
        ("keep_ms", archive.keep_ms, 0),
        ("every_ms", archive.every_ms, _ARCHIVE_EVERY_LEAST_MS),
        ("cache_bytes", archive.cache_bytes, 0),
    )
    return [*_too_small("archive", rows), *_place_problems("archive.to", archive.to)]


def _too_small(section: str, rows: Iterable[tuple[str, int, int]]) -> list[str]:
    """Return a sentence for each (key, value, least value) whose value is too small."""
    return [
        f"{section}.{key} is {value}; it must be {least} or more."
        for key, value, least in rows
        if value < least
    ]


def _place_problems(key: str, where: str) -> list[str]:
    if where and ("://" not in where or where.startswith("s3://")):
        return []
    return [f"{key} names no place; use a folder or s3://BUCKET/PATH."]


def _kafka_problems(settings: ControllerSettings) -> list[str]:
    kafka = settings.kafka
    if kafka is None:
        return []
    return kafka_listener_problems(
        kafka,
        lambda address: kafka_problems(
            kafka,
            address,
            tls=settings.tls is not None,
            require_authentication=settings.require_authentication,
            insecure_network=settings.insecure_network,
        ),
    )


def _delegation_problems(delegations: tuple[Delegation, ...]) -> list[str]:
    brokers = [grant.broker for grant in delegations]
    found = [
        f"delegations: broker is {broker}; a broker's number is 0 or more."
        for broker in brokers
        if broker < 0
    ]
    if len(set(brokers)) != len(brokers):
        found.append(f"delegations names a broker twice: {sorted(brokers)}; join their users.")
    for grant in delegations:
        if not grant.users:
            found.append(f"delegations: broker {grant.broker} has no users; name some, or drop it.")
        found += [
            f"delegations: {user!r} of broker {grant.broker} is no user; use User:NAME or User:*."
            for user in grant.users
            if not user.startswith("User:") or user == "User:"
        ]
    return found


def _is_hex(text: str) -> bool:
    return all(character in "0123456789abcdef" for character in text.lower())
