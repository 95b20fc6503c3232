"""Settings of a controller: what its file may say. `controller_checks` checks them."""

from typing import Literal

import msgspec

from logberg.processes.settings.coordination_settings import CoordinationSettings
from logberg.processes.settings.kafka_settings import AgentKafkaSettings, KafkaSettings
from logberg.processes.settings.shared_settings import BrokerEndpoint, Tls, reached_at
from logberg.processes.settings.tracing_settings import TracingSettings
from logberg.processes.settings.witness_settings import WitnessesSettings


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A bearer token, by its hash. The configuration never holds the token itself."""

    principal: str
    """The principal that it authenticates, such as User:alice."""
    sha256: str
    """SHA-256 of the token, 64 hexadecimal digits."""


class Delegation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The users for which a broker may forward requests that a certificate authenticated."""

    broker: int
    """The broker's number."""
    users: tuple[str, ...]
    """Principals, such as User:alice; `User:*` is every user."""


class AttemptRuleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Some attempts, and in what detail they are recorded. The first rule that matches decides.

    Lists hold patterns such as User:batch-*; an empty one matches everything.
    """

    detail: Literal["none", "metadata", "request", "request-response"]
    """metadata: who, what, from where, why. request: also the first request of each kind, without
    its body. request-response: also its answer."""
    outcome: Literal["", "refused", "accepted"] = ""
    """Empty: both."""
    principals: tuple[str, ...] = ()
    """Who asked; an empty pattern is a caller without credentials."""
    operations: tuple[str, ...] = ()
    """What was asked: a route such as create_topics, or login, or connect."""
    resources: tuple[str, ...] = ()
    """What it was about, such as topic:orders."""
    addresses: tuple[str, ...] = ()
    """From where."""


class PeerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One controller of the cluster, as every controller's file lists it."""

    node_id: int
    """Its number, 0 or more."""
    quorum: str
    """host:port of its quorum listener."""
    http: str
    """URL of its HTTP listener; the node itself listens there."""
    role: Literal["voter", "observer"] = "voter"
    """`observer`: it holds the log and serves what a standby serves, and votes only once somebody
    promotes it. The same in every controller's file."""


class BrokerBeside(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[broker]` in a controller's file: the agent that runs in the controller's process."""

    data: str | None = None
    """The agent's folder, of its own; default: the controller's `data`, followed by `-broker`."""
    http: str | None = None
    """host:port of the agent's own HTTP listener; default: 100 above the controller's port."""
    endpoints: tuple[BrokerEndpoint, ...] = ()
    """Where the broker's clients reach it."""
    rack: str | None = None
    """Replicas of a partition are spread over racks."""
    tls: Tls | None = None
    """The broker's own certificates; needed if the controller has `[tls]`."""
    fetch_from: str = "leader"
    """leader or any, as in the settings of `logberg broker`."""
    stop_limit_ms: int = 300_000
    """The agent ends a controlled shutdown that takes longer."""
    stop_silence_ms: int = 4_000
    """A controlled shutdown ends when the active controller has not answered for so long."""
    holds_no_data: bool = False
    """For brokers without data, as in the settings of `logberg broker`."""
    host_socket: str | None = None
    """Unix socket for the broker process beside the agent, which only the agent's own user can
    open: producer ids, directories and secrets."""
    log_dirs: tuple[str, ...] = ()
    """Ids of the broker's log directories: 22 characters each, as `logberg cluster-id` draws."""
    cluster_key: str | None = None
    """File of the cluster key, if the broker verifies logins: over host_socket, or of Kafka's
    clients by SCRAM; or if it judges people who have pseudonyms and show certificates."""
    token_secret: str | None = None
    """File with the text of the controllers' token_secret, if they have one."""
    kafka: AgentKafkaSettings | None = None
    """A listener for Kafka's clients; default: none."""


class BackupSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[backups]` in a controller's file: backups that the controllers make by themselves."""

    where: str
    """A folder that all controllers share, or s3://BUCKET/PATH. The first standby makes them, and
    the leader only if it is alone."""
    every_ms: int = 86_400_000
    """A backup is due when the newest one there is so old."""
    keep: int = 7
    """So many of the newest ones stay."""


class ArchiveSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[archive]` in a controller's file: where old segments of the log move."""

    to: str
    """A folder that all controllers share, or s3://BUCKET/PATH. Each cluster has its own."""
    keep_bytes: int = 1024 * 1024 * 1024
    """So many bytes of the log stay on this node, the newest ones."""
    keep_ms: int = 0
    """Segments with records that are younger stay too."""
    every_ms: int = 60_000
    """How often the controller looks for segments that may move."""
    cache_bytes: int = 256 * 1024 * 1024
    """The most bytes of segments that were read back for readers; one segment always has room."""


class JoinSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[join]` in a controller's file: nodes get their certificates by join tokens."""

    ca_cert: str
    """The certificate of the cluster's authority (PEM)."""
    ca_key: str
    """Its private key (PEM). Whoever has it can be every node and every user."""


class ControllerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`logberg controller --config FILE`."""

    cluster_id: str
    """The same in every file of the cluster; `logberg cluster-id` generates one."""
    node_id: int
    """Which of `controllers` this one is."""
    data: str
    """This node's folder, of its own."""
    controllers: tuple[PeerSettings, ...]
    """All of them, this one too."""
    broker: BrokerBeside | None = None
    """Run a broker's agent in this process too; its number is `node_id`. Also --with-broker."""
    unix_socket: str | None = None
    """Also listen on this socket; callers are identified by their operating system user."""
    tls: Tls | None = None
    """Certificates; needed to listen beyond this machine."""
    tokens: tuple[Token, ...] = ()
    """The bearer tokens that this controller accepts."""
    delegations: tuple[Delegation, ...] = ()
    """Which broker may speak for which users. A bearer token that a broker passes on needs none."""
    require_authentication: bool = False
    """Refuse callers that are User:ANONYMOUS, except for /health."""
    authorization: str = ""
    """on: each request needs a right; log-only: what would be refused is logged and counted; off:
    whoever is let in may administer. The same on all controllers. A new controller's file must say
    it; one whose folder holds a log is off without it."""
    super_users: tuple[str, ...] = ()
    """Principals that may do everything, whatever the entries say, such as User:admin."""
    bootstrap_admin_kept: bool = False
    """User:admin, the administrator of the first start, stays a super user on purpose; `doctor` is
    silent about it."""
    attempt_rules: tuple[AttemptRuleSettings, ...] = ()
    """Which refused attempts and accepted requests go into the log in what detail, before the
    defaults: refused ones with who, what, from where and why; accepted requests not at all."""
    attempts_interval_ms: int = 10_000
    """Each controller reports the attempts that it counted to the leader so often. What is not
    reported when its process ends is lost."""
    attempts_bytes_per_minute: int = 131_072
    """So many bytes of the log may these reports take, of all controllers together. What is beyond
    waits, counted."""
    allow_if_no_acl: bool = False
    """Everybody may do what no entry is about (Kafka's allow.everyone.if.no.acl.found)."""
    initial_features: dict[str, int] = {}
    """Feature levels of a new cluster, such as { "metadata.version" = 21 }; the others begin at the
    newest level that all controllers support. The same on all controllers; without effect later."""
    join: JoinSettings | None = None
    """Let nodes join by tokens; default: certificates are made elsewhere. The same on all
    controllers."""
    cluster_key: str | None = None
    """File of the cluster key, the same on all controllers; default: cluster.key in `data`."""
    token_secret: str | None = None
    """File with the text that Kafka's brokers have as delegation.token.secret.key, so they take our
    delegation tokens; default: tokens are made with the cluster key, for our own agents."""
    seal_addresses: bool = False
    """The leader seals the addresses of users in the log, so that `logberg erase` reaches them. It
    needs the cluster key. The same on all controllers."""
    pseudonyms: tuple[str, ...] = ()
    """Principals, such as "User:*@example.com", whose names the log has as pseudonyms, so that
    `logberg erase` reaches them. It needs the cluster key. The same on all controllers."""
    cluster_key_replaces: str = ""
    """The id of a cluster key of which all copies are lost; this controller's key replaces it."""
    token_max_lifetime_ms: int = 604_800_000
    """The greatest age of a delegation token."""
    token_period_ms: int = 86_400_000
    """How long a delegation token lives without a renewal."""
    insecure_network: bool = False
    """Listen beyond this machine without TLS; also --insecure-network."""
    log_level: str = "info"
    """debug, info, warning or error."""
    session_ms: int = 9_000
    """The controller fences a broker that is silent for so long."""
    heartbeat_ms: int = 2_000
    """The longest time that a controller holds a broker's fetch; at most half of session_ms."""
    standbys_take_heartbeats: bool = False
    """Standbys answer heartbeats of brokers with fetch_from = "any", once the leader has confirmed
    them. For thousands of brokers."""
    election_timeout_ms: int = 500
    """A follower that hears nothing from the leader for so long starts an election."""
    checkpoint_bytes: int = 20 * 1024 * 1024
    """The controller writes a checkpoint after so many bytes of log."""
    checkpoint_ms: int = 3_600_000
    """It also writes one after so long, if the log has grown."""
    signed_head_ms: int = 10_000
    """The active controller asks for a signed head of the log so often, if something was committed
    since; 0: this controller keeps no tree and signs nothing."""
    segment_bytes: int = 64 * 1024 * 1024
    """Size of a ledger segment; the same on all controllers of a cluster, for good."""
    journal_tail_bytes: int = 64 * 1024 * 1024
    """Kept in the journal behind a checkpoint, for followers that lag."""
    scrub_bytes_per_s: int = 1024 * 1024
    """Speed of the daily scrub, which reads closed files to find damage; 0: no scrub."""
    partitions_per_request_max: int = 200_000
    """A request that creates more partitions is refused with POLICY_VIOLATION."""
    partition_mutations_per_s: int = 20_000
    """Partitions a second that changes may create, delete or touch (KIP-599); 0: no quota."""
    partition_mutations_burst: int = 200_000
    """How many the quota can save up. Once they are used up, the next change waits."""
    min_insync_replicas: int = 1
    """min.insync.replicas of topics without a config: so many replicas in sync take writes."""
    unclean_leader_election: bool = False
    """unclean.leader.election.enable of topics without a config: losing writes beats no leader."""
    unclean_leader_election_ms: int = 300_000
    """Time between two looks for partitions that may have an unclean election; 0: none."""
    auto_leader_rebalance: bool = True
    """Partitions go back to their preferred leaders (auto.leader.rebalance.enable)."""
    leader_imbalance_check_ms: int = 300_000
    """Time between two such passes (leader.imbalance.check.interval.seconds)."""
    default_partitions: int = 1
    """How many partitions a topic gets if its creator doesn't say (num.partitions)."""
    default_replication_factor: int = 3
    """How many replicas its partitions get if the creator doesn't say (default.replication.factor);
    1 for a node that runs from server.properties, as in Kafka."""
    topic_deletion: bool = True
    """If false, deletions are refused with TOPIC_DELETION_DISABLED (delete.topic.enable)."""
    configs: dict[str, str] = {}
    """Kafka's keys of brokers, such as min.insync.replicas, for all topics and groups that have no
    config of their own. The same on all controllers."""
    create_topic_policy: str = ""
    """A plug-in that may refuse new topics: package.module:name, or the name of an entry point."""
    alter_config_policy: str = ""
    """A plug-in that may refuse changes of configs, named in the same way."""
    coordination: CoordinationSettings | None = None
    """How much sessions, entries and keys of services there may be; default: as below."""
    kafka: KafkaSettings | None = None
    """A listener for Kafka's brokers and administrators; default: none."""
    backups: BackupSettings | None = None
    """Backups that the controllers make by themselves; default: none."""
    archive: ArchiveSettings | None = None
    """Old segments of the log move to an archive; default: they stay here."""
    witnesses: WitnessesSettings | None = None
    """Who outside the cluster keeps its signed heads; default: nobody."""
    tracing: TracingSettings | None = None
    """Changes are traced for a collector of OpenTelemetry's; needs logberg[otel]. Default: none."""
    name_long_callbacks: bool = False
    """Log each callback that takes the loop more than 20 ms of processor time; for diagnosis."""
    slow_request_ms: int = 1_000
    """Log each request that takes longer, unless it waits for news; 0: none."""
    slow_sync_ms: int = 200
    """Log each sync of the journal or the ledger that takes longer; 0: none."""

    def trusting_the_network(self) -> "ControllerSettings":
        """The same with `insecure_network`."""
        return msgspec.structs.replace(self, insecure_network=True)

    def with_broker(self) -> "ControllerSettings":
        """The same with an agent in the process; without `[broker]`, with its defaults."""
        return msgspec.structs.replace(self, broker=self.broker or BrokerBeside())

    def kafka_address(self) -> tuple[str, int] | None:
        """Host and port at which Kafka's brokers reach this node. Raises SettingsError."""
        return None if self.kafka is None else reached_at(self.kafka)

    def own(self) -> PeerSettings:
        """The entry of this node."""
        return next(peer for peer in self.controllers if peer.node_id == self.node_id)
