"""The parts of this room, wired: what a controller needs to lead.

A standby has them too. They are idle until `LeaderDuties.begin`.
"""

from collections.abc import Callable, Sequence

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.leader.changes import Changes
from controller.leader.client_mutation_quotas import ClientMutationQuotas
from controller.leader.cluster_key_check import ClusterKeyCheck
from controller.leader.fencing import Fencing
from controller.leader.first_levels import FirstLevels
from controller.leader.heartbeats import AwakeTime, Heartbeats
from controller.leader.identity import IdentityCheck
from controller.leader.import_parts import ImportParts
from controller.leader.leader_duties import FOLLOWED, LeaderDuties, provenance_of_node
from controller.leader.leadership_check import LeadershipCheck
from controller.leader.leftover_elections import LeftoverElections
from controller.leader.mutation_quota import MutationQuota
from controller.leader.periodic_elections import PeriodicElection
from controller.leader.proposer import Proposer
from controller.leader.self_registration import SelfRegistration, registration_of
from controller.leader.session_contacts import SessionContacts
from controller.leader.session_expiry import FOLLOWED as SESSIONS_FOLLOWED
from controller.leader.session_expiry import SessionExpiry
from controller.leader.token_expiry import (
    TokenExpiries,
    TokenExpiry,
    access_and_join_tokens,
    delegation_tokens,
)
from controller.leader.voters_projection import VotersProjection
from controller.managers.address_sealing import AddressSealer
from controller.managers.bridge.bridging import BridgeManager
from controller.managers.brokers import BrokerManager
from controller.managers.clients.managers import ClientManagers
from controller.managers.config_secrets import ConfigSecrets
from controller.managers.configs import ConfigManager
from controller.managers.coordination.managers import CoordinationManagers
from controller.managers.declared.apply import ApplyManager
from controller.managers.declared.topics import TopicManagers
from controller.managers.imports.importing import ImportManager
from controller.managers.isr_changes import IsrManager
from controller.managers.leader_elections import ElectionManager
from controller.managers.partitions import PartitionManager
from controller.managers.pseudonym_covering import covering_of
from controller.managers.reassignments import ReassignmentManager
from controller.managers.replica_directories import DirectoryManager
from controller.managers.topic_rules import defaults_of
from controller.managers.topics import TopicManager
from controller.managers.voters import VoterManager
from controller.policies import NO_POLICIES, Policies
from controller.replica.parts import ReplicaParts
from metadata.configs.effective import UNCLEAN
from metadata.records import ConfigRecord, Record
from quorum.api import Quorum
from runtime.clock import Clock
from runtime.randomness import Random


class LeaderParts:
    """Decides and writes while this controller leads."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        random: Random,
        quorum: Quorum,
        replica: ReplicaParts,
        on_defect: Callable[[BaseException], None],
        log: FilteringBoundLogger,
        policies: Policies = NO_POLICIES,
    ) -> None:
        """`on_defect` gets the exception of a decision that failed."""
        self._log = log
        self.node_id = config.node_id
        self.cluster_id = config.cluster_id
        self.own_provenance = provenance_of_node(config.node_id)
        self.voters = quorum.voters
        self.awake = AwakeTime(clock, config.beat_s, self._on_stall)
        self.heartbeats = Heartbeats(self.awake, config.session_s, 2 * config.heartbeat_s)
        self.leadership_check = LeadershipCheck(quorum.read_index)
        self.own_configs = defaults = defaults_of(config)
        self.brokers = BrokerManager(self.heartbeats, defaults)
        self.elections = ElectionManager(defaults)
        self.configs = ConfigManager(
            defaults, policies.alter_config, ConfigSecrets(random, config.cluster_key)
        )
        self.topics = TopicManager(config, random, self.configs, policies.create_topic)
        self.partitions = PartitionManager(config, random)
        self.reassignments = ReassignmentManager(defaults)
        self.directories = DirectoryManager(defaults)
        self.covering = covering_of(config)
        self.clients = ClientManagers(config, random, clock.wall_ms, self.covering)
        self.declared = ApplyManager(
            TopicManagers(self.topics, self.partitions), self.configs, self.clients
        )
        self.coordination = CoordinationManagers(random, config.coordination)
        self.session_contacts = SessionContacts(self.awake)
        self.imports = ImportManager(
            self.topics, self.configs, self.clients, config.coordination, clock.wall_ms
        )
        self.bridge = BridgeManager(self.configs, self.clients, clock.wall_ms)
        self.voter_manager = VoterManager(quorum, config.standing_observers)
        self.import_parts = ImportParts(clock)
        self.identity = IdentityCheck(
            config.cluster_id, require_authentication=config.brokers_prove_themselves
        )
        self.quota = MutationQuota(
            clock, config.partition_mutations_per_s, config.partition_mutations_burst
        )
        self.client_quotas = ClientMutationQuotas(clock)
        self.address_sealer = (
            AddressSealer(config.cluster_key, clock.wall_ms)
            if config.seal_addresses and config.cluster_key is not None
            else None
        )
        self.proposer = Proposer(
            clock,
            quorum.propose,
            quorum.change_voters,
            self._on_records,
            quorum.resign,
            waiting_max=config.waiting_decisions_max,
            lag_warn_ms=config.clock_lag_warn_ms,
            compare_records=config.compare_records,
            unsent=quorum.unsent,
            log=log,
            on_defect=on_defect,
            sealer=self.address_sealer,
        )
        self.isrs = IsrManager(defaults, self.proposer.is_leaving)
        self.fencing = Fencing(
            clock, self.heartbeats, self.brokers, self.proposer, self.own_provenance, log
        )
        self.leftover_elections = LeftoverElections(
            clock, self.brokers, self.proposer, self.own_provenance
        )
        self.periodic_elections = (
            PeriodicElection(
                clock,
                self.proposer,
                config.leader_balance_s,
                lambda image: len(image.topics.unpreferred) > 0,
                self.elections.balance,
                lambda: self.own_provenance("BalanceLeaders"),
            ),
            PeriodicElection(
                clock,
                self.proposer,
                config.unclean_election_s,
                lambda image: len(image.topics.leaderless) > 0,
                self.elections.unclean,
                lambda: self.own_provenance("ElectLeaders"),
            ),
        )
        self.token_expiry = TokenExpiries(
            *(
                TokenExpiry(clock, kind, self.proposer, lambda: replica.image, self.own_provenance)
                for kind in (
                    delegation_tokens(self.clients.tokens),
                    access_and_join_tokens(self.clients.access_tokens),
                )
            )
        )
        self.session_expiry = SessionExpiry(
            clock,
            self.session_contacts,
            self.coordination.sessions,
            self.proposer,
            self.own_provenance,
            log,
        )
        own = registration_of(config, random.randbytes(16))
        self.key_check = ClusterKeyCheck(
            config.cluster_key, config.cluster_key_replaces, lambda: replica.image, log
        )
        self.first_levels = FirstLevels(own, config.initial_features, clock, quorum.voters, log)
        self.self_registration = SelfRegistration(
            own,
            clock,
            self.proposer,
            quorum.announce,
            quorum.voters,
            lambda: replica.image,
            lambda node_id, operation: provenance_of_node(node_id)(operation),
            self.first_levels,
            log,
        )
        self.voters_projection = VotersProjection(
            clock, quorum.voter_set, self.proposer, self.own_provenance, log
        )
        self.duties = LeaderDuties(
            clock,
            config.node_id,
            replica.applier,
            self.proposer,
            self.heartbeats,
            self.fencing,
            self.leftover_elections,
            self.periodic_elections,
            self.self_registration,
            self.voters_projection,
            self.token_expiry,
            self.session_expiry,
            self.first_levels,
            defaults,
            self.key_check,
            quorum.resign,
            quorum.voters,
            log,
        )
        self.changes = Changes(
            config,
            clock,
            random,
            self.proposer,
            self.quota,
            self.client_quotas,
            replica.reads.linearizable,
            self.leadership_check,
        )

    @property
    def heard(self) -> Heartbeats | None:
        """Which brokers were heard from; None on a standby, which doesn't know."""
        return self.heartbeats if self.proposer.pending is not None else None

    def _on_records(self, records: Sequence[Record]) -> None:
        kinds = set(map(type, records))
        if not FOLLOWED.isdisjoint(kinds):
            self.duties.follow(records)
        if not SESSIONS_FOLLOWED.isdisjoint(kinds):
            self.session_expiry.follow(records)
        if ConfigRecord in kinds and any(
            isinstance(record, ConfigRecord) and record.name == UNCLEAN for record in records
        ):
            self.leftover_elections.begin("unclean elections may be allowed now")

    def _on_stall(self, seconds: float) -> None:
        self._log.warning("loop_stalled", seconds=round(seconds, 3))
        self.heartbeats.after_stall()
        self.session_contacts.after_stall()
        if self.duties.elected:
            self.leadership_check.begin()
