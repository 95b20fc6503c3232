"""The settings of a controller, each with its unit and default.

Only the leader reads settings that decide what is written. Replay reads none, so controllers with
different settings still have the same state.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec

from metadata.acl_rules import Enforcement
from metadata.certifying import NodeAuthority
from metadata.messages.versions import NEWEST
from metadata.sealing import ClusterKey

KIB = 1024
MIB = 1024 * KIB
BOOTSTRAP_ADMIN = "User:admin"
"""The administrator of the first start, whose token `logberg up` writes."""


class RecordedDetail(StrEnum):
    """How much of an attempt is recorded, as the levels of Kubernetes' audit policy."""

    NONE = "none"
    METADATA = "metadata"
    REQUEST = "request"
    RESPONSE = "request-response"


class AttemptRule(msgspec.Struct, frozen=True, kw_only=True):
    """Says in what detail some attempts are recorded (ADR 0090). The first that matches decides.

    Lists hold patterns such as `User:batch-*`; an empty one matches everything.
    """

    detail: str
    """One of `RecordedDetail`."""
    outcome: str = ""
    """`refused` or `accepted`; empty: both."""
    principals: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


class CoordinationLimits(msgspec.Struct, frozen=True):
    """The limits. A new leader with other limits keeps what is there."""

    ttl_min_ms: int = 500
    ttl_max_ms: int = 600_000
    """A session's ttl is moved into these bounds, and the reply says so."""
    key_bytes: int = KIB
    """Of a key in UTF-8."""
    name_bytes: int = KIB
    """Of a resource's name, and of an entry's id, in UTF-8."""
    data_bytes: int = 64 * KIB
    """Of an entry's data."""
    value_bytes: int = MIB - 32 * KIB
    """Of a key's value. With the provenance it fits into one batch of the log."""
    commit_operations: int = 1_000
    """Operations, checks and fences of one transaction, together."""
    commit_bytes: int = MIB
    """Keys and values of one transaction, together."""
    entries_per_session: int = 1_000
    entries_per_resource: int = 10_000
    sessions: int = 20_000
    entries: int = 100_000
    keys: int = 1_000_000
    total_bytes: int = 256 * MIB
    """Of all sessions, entries and keys."""
    watch_scopes: int = 1_000
    """Scopes of one watch."""


class ControllerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one controller."""

    cluster_id: str
    node_id: int
    controller_urls: Mapping[int, str] = {}
    """Where each controller answers HTTP, by node id. A standby sends callers to the leader."""
    standing_observers: frozenset[int] = frozenset()
    """The controllers that vote only once somebody promotes them."""

    kafka_address: tuple[str, str, int] | None = None
    """Where this controller listens for Kafka: the listener's name, host and port. The leader
    writes it into the voters of the log. The host has at most 128 characters. None: it has no such
    listener (ADR 0071)."""

    slow_request_s: float = 0.0
    """The controller logs a request that takes longer; 0: none."""
    newest_version: int = NEWEST
    """The newest version of requests that this controller reads. Only tests that imitate an old
    release set a lower one."""
    session_s: float = 9.0
    """A broker that is silent for so long is fenced."""
    heartbeat_s: float = 2.0
    """The longest time for which a fetch is held. Brokers send the next fetch at once."""
    beat_s: float = 0.1
    """How often a timer checks the event loop. The time by which it fires late is a stall."""

    standbys_take_heartbeats: bool = False
    """A standby answers heartbeats of brokers in service, once the leader has confirmed them
    (ADR 0048). A leader confirms them whatever its own setting is."""

    initial_features: Mapping[str, int] = {}
    """Levels at which a new log begins, by feature. The others begin at the newest level that all
    voters support."""

    require_authentication: bool = False
    """Only a broker's own credentials speak for it. If off, users and anonymous callers may too."""
    authorization: str = Enforcement.OFF
    """One of `Enforcement` (ADR 0086)."""
    delegations: Mapping[int, frozenset[str]] = {}
    """By broker id: the principals for which it may ask. `User:*` stands for every user."""
    super_users: frozenset[str] = frozenset()
    """Principals that may do everything, whatever the access control entries say."""
    bootstrap_admin_kept: bool = False
    """`BOOTSTRAP_ADMIN` is a super user on purpose."""
    attempt_rules: tuple[AttemptRule, ...] = ()
    """Which attempts are recorded in what detail, before the defaults: refused ones with who, what,
    from where and why, accepted ones not at all."""
    attempts_interval_s: float = 10.0
    """Each controller reports attempts to the leader so often."""
    attempts_bytes_per_minute: int = 128 * KIB
    """So many bytes of the log reports of attempts may take, of all controllers together. What is
    beyond waits, counted."""
    allow_if_no_acl: bool = False
    """Whether everybody may use a resource that no access control entry is about."""
    cluster_key: ClusterKey | None = None
    """Seals secrets, and makes the HMACs of tokens; the same on all controllers (ADR 0031)."""
    authority: NodeAuthority | None = None
    """Signs the certificates of nodes that join by a token (ADR 0089)."""
    seal_addresses: bool = False
    """The leader seals the addresses of callers in the log (ADR 0093). It needs `cluster_key`."""
    pseudonyms: tuple[str, ...] = ()
    """Patterns of principals whose names the log has as pseudonyms only (ADR 0093). It needs
    `cluster_key`."""
    named_by_settings: frozenset[str] = frozenset()
    """Principals that keep their names because the process's settings name them, besides
    `super_users` and `delegations`."""
    cluster_key_replaces: str = ""
    """The id of a lost cluster key, in hex: the log names `cluster_key` in its place."""
    token_max_lifetime_ms: int = 7 * 24 * 3_600_000
    """The greatest age of a delegation token."""
    token_period_ms: int = 24 * 3_600_000
    """How long a delegation token lives without a renewal."""

    default_partitions: int = 1
    """How many partitions a topic gets that is created with -1 partitions."""
    default_replication_factor: int = 3
    """How many replicas a topic gets that is created with -1 replicas."""
    min_insync_replicas: int = 1
    """min.insync.replicas of topics that have no config of their own."""
    unclean_leader_election: bool = False
    """unclean.leader.election.enable of topics that have no config of their own."""
    leader_balance_s: float = 300.0
    """Time between two passes that give partitions back to their preferred leaders; 0: never."""
    unclean_election_s: float = 300.0
    """Time between two looks for partitions without a leader that may have an unclean election."""
    configs: Mapping[str, str] = {}
    """Kafka's keys of brokers, and values: the controllers' own settings for topics and groups that
    have no config of their own. They are checked at the start."""
    topic_deletion: bool = True
    partitions_per_request_max: int = 200_000
    """A request that creates more is refused: a typing error must not fill the cluster's memory."""
    partition_mutations_per_s: float = 20_000
    """How fast the quota for created, deleted and touched partitions grows; 0: no quota."""
    partition_mutations_burst: int = 200_000
    """The largest number of partitions that the quota saves up."""

    coordination: CoordinationLimits = CoordinationLimits()
    """How much sessions, entries and keys there may be (ADR 0055)."""

    fetch_bytes_max: int = MIB
    """The most bytes of batches in one MetadataFetch reply, whatever the request asks for. Reading,
    verifying and writing them takes a few milliseconds. A broker that needs more asks again."""
    parked_requests_max: int = 20_000
    """The most requests that are held at a time, for fetches and for watches each. Further ones are
    answered at once."""
    waiting_decisions_max: int = 10_000
    """The most requests that wait for their decision. Further ones are refused with THROTTLED."""
    read_wait_s: float = 5.0
    """How long a read waits for a majority, or for the offset that it asked for."""

    write_wait_s: float = 30.0
    """How long a change waits for its commit. Then its caller gets REQUEST_TIMED_OUT."""

    clock_lag_warn_ms: int = 1000
    """The leader logs a warning if its clock is so far behind the log's last timestamp."""
    compare_records: bool = False
    """The leader decodes each small batch that it has just encoded, and compares the records. It is
    on in all tests, to find a record that its encoding doesn't give back (ADR 0045)."""
    request_id_ahead_ms: int = 5 * 60 * 1000
    """A request id whose time is further ahead of our clock is refused."""

    head_seed: bytes = b""
    """This controller's own private key (Ed25519, 32 bytes). It signs heads of the tree of batches
    (ADR 0085). Empty: it keeps no tree and signs nothing."""
    new_head_seed: Callable[[], bytes] | None = None
    """Draws another such key when somebody asks this controller to change it; None: it can't."""
    head_interval_s: float = 10.0
    """The leader asks for a signed head so often, if something was committed since."""
    witnesses_needed: int = 1
    """A head is witnessed when so many witnesses have it (ADR 0088)."""
    witness_window_s: float = 60.0
    """The controller says so when batches have waited longer than this for a witnessed head."""

    checkpoint_bytes: int = 20 * MIB
    """A checkpoint is written after so many bytes of log."""
    checkpoint_interval_s: float = 3600.0
    """A checkpoint is also written after so long, if the log has grown at all."""
    ledger_segment_bytes: int = 64 * MIB

    archive_keep_bytes: int = 1024 * MIB
    """So many bytes of the ledger stay here; older segments move to the archive, if there is one
    (ADR 0082)."""
    archive_keep_s: float = 0.0
    """Segments with records that are younger stay here too."""
    archive_every_s: float = 60.0
    """Time between two looks for segments that may move."""
    archive_cache_bytes: int = 256 * MIB
    """The most bytes of segments that were read back from the archive, but always one segment."""
    archive_wait_s: float = 30.0
    """How long a reader waits for a segment from the archive."""

    scrub_bytes_per_s: int = MIB
    """How fast closed files are read to verify them; 0: never."""
    scrub_interval_s: float = 86_400.0
    """Time from the end of one pass over the files to the beginning of the next."""

    catch_up_chunk_bytes: int = MIB
    """Size of the pieces in which a peer's files are fetched; at most 1 MiB."""
    catch_up_retry_s: float = 0.5
    """Pause after a peer didn't answer."""

    @property
    def brokers_prove_themselves(self) -> bool:
        """Whether only a broker's own credentials speak for it."""
        return self.require_authentication or self.authorization == Enforcement.ON

    @property
    def bootstrap_admin(self) -> str:
        """The administrator of the first start, while nobody has replaced it or said to keep it."""
        known = BOOTSTRAP_ADMIN in self.super_users and not self.bootstrap_admin_kept
        return BOOTSTRAP_ADMIN if known else ""
