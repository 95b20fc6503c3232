"""The settings of a controller as its parts take them: the quorum's config and the controller's."""

import os
from secrets import token_bytes
from typing import Final

import msgspec

from controller.config import AttemptRule, ControllerConfig
from ledger.merkle.notes import SEED_BYTES
from logberg.processes.settings.controller_settings import ArchiveSettings, ControllerSettings
from logberg.processes.settings.coordination_settings import coordination_limits
from logberg.processes.settings.kafka_settings import first_features_for_kafka
from logberg.processes.settings.shared_settings import host_and_port
from logberg.processes.settings.witness_settings import WitnessesSettings
from metadata.acl_rules import Enforcement
from metadata.certifying import NodeAuthority
from metadata.sealing import ClusterKey
from quorum.config import QuorumConfig
from runtime.links.interface import Peer

COMPARE_RECORDS: Final = "LOGBERG_COMPARE_RECORDS"
"""Variable of the environment: "1" switches on `ControllerConfig.compare_records`, for tests."""


def quorum_config(settings: ControllerSettings) -> QuorumConfig:
    """The quorum's part of a controller's settings."""
    peers = []
    for peer in settings.controllers:
        host, port = host_and_port(peer.quorum, "controllers.quorum")
        peers.append(Peer(peer.node_id, host, port))
    return QuorumConfig(
        cluster_id=settings.cluster_id,
        node_id=settings.node_id,
        peers=tuple(peers),
        first_voters=tuple(p.node_id for p in settings.controllers if p.role == "voter"),
        election_timeout_ms=settings.election_timeout_ms,
        tail_bytes=settings.journal_tail_bytes,
    )


def controller_config(
    settings: ControllerSettings,
    cluster_key: ClusterKey | None = None,
    head_seed: bytes = b"",
    authority: NodeAuthority | None = None,
) -> ControllerConfig:
    """The controller's part of its settings. `head_seed`: the key that signs heads.

    `authority`: signs the certificates of nodes that join.
    """
    address = settings.kafka_address()
    first = settings.initial_features
    archive = settings.archive or ArchiveSettings(to="")
    witnesses = settings.witnesses or WitnessesSettings()
    return ControllerConfig(
        cluster_id=settings.cluster_id,
        node_id=settings.node_id,
        controller_urls={peer.node_id: peer.http for peer in settings.controllers},
        standing_observers=frozenset(
            peer.node_id for peer in settings.controllers if peer.role == "observer"
        ),
        require_authentication=settings.require_authentication,
        delegations={grant.broker: frozenset(grant.users) for grant in settings.delegations},
        # A file that doesn't say it fails closed; the process has decided before (`enforcement`).
        authorization=settings.authorization or Enforcement.ON.value,
        super_users=frozenset(settings.super_users),
        bootstrap_admin_kept=settings.bootstrap_admin_kept,
        attempt_rules=tuple(
            AttemptRule(**msgspec.structs.asdict(rule)) for rule in settings.attempt_rules
        ),
        attempts_interval_s=settings.attempts_interval_ms / 1000,
        attempts_bytes_per_minute=settings.attempts_bytes_per_minute,
        allow_if_no_acl=settings.allow_if_no_acl,
        initial_features=first if settings.kafka is None else first_features_for_kafka(first),
        kafka_address=(
            None
            if settings.kafka is None or address is None
            else (settings.kafka.listener_name, *address)
        ),
        cluster_key=cluster_key,
        seal_addresses=settings.seal_addresses,
        pseudonyms=settings.pseudonyms,
        named_by_settings=frozenset(
            (
                *(token.principal for token in settings.tokens),
                *(who for rule in settings.attempt_rules for who in rule.principals),
            )
        ),
        authority=authority,
        cluster_key_replaces=settings.cluster_key_replaces,
        token_max_lifetime_ms=settings.token_max_lifetime_ms,
        token_period_ms=settings.token_period_ms,
        slow_request_s=settings.slow_request_ms / 1000,
        session_s=settings.session_ms / 1000,
        heartbeat_s=settings.heartbeat_ms / 1000,
        standbys_take_heartbeats=settings.standbys_take_heartbeats,
        head_seed=head_seed,
        new_head_seed=lambda: token_bytes(SEED_BYTES),
        head_interval_s=settings.signed_head_ms / 1000,
        witnesses_needed=witnesses.needed,
        witness_window_s=witnesses.window_ms / 1000,
        checkpoint_bytes=settings.checkpoint_bytes,
        checkpoint_interval_s=settings.checkpoint_ms / 1000,
        ledger_segment_bytes=settings.segment_bytes,
        scrub_bytes_per_s=settings.scrub_bytes_per_s,
        archive_keep_bytes=archive.keep_bytes,
        archive_keep_s=archive.keep_ms / 1000,
        archive_every_s=archive.every_ms / 1000,
        archive_cache_bytes=archive.cache_bytes,
        partitions_per_request_max=settings.partitions_per_request_max,
        partition_mutations_per_s=settings.partition_mutations_per_s,
        partition_mutations_burst=settings.partition_mutations_burst,
        min_insync_replicas=settings.min_insync_replicas,
        unclean_leader_election=settings.unclean_leader_election,
        unclean_election_s=settings.unclean_leader_election_ms / 1000,
        leader_balance_s=(
            settings.leader_imbalance_check_ms / 1000 if settings.auto_leader_rebalance else 0.0
        ),
        default_partitions=settings.default_partitions,
        default_replication_factor=settings.default_replication_factor,
        topic_deletion=settings.topic_deletion,
        configs=settings.configs,
        coordination=coordination_limits(settings.coordination),
        compare_records=os.environ.get(COMPARE_RECORDS) == "1",
    )
