"""The configuration of an agent."""

from enum import Enum

import msgspec

from metadata.acl_rules import Enforcement


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address at which the broker's own clients reach it."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class FeatureRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The levels of one feature that the broker's software supports, both ends included."""

    name: str
    min: int
    max: int


class FetchFrom(Enum):
    """Which controllers an agent sends its heartbeats to."""

    LEADER = "leader"
    ANY = "any"
    """Brokers in service ask the standby that their id falls to, and after an error the leader."""


class NewGenerations(Enum):
    """What an agent does when the cluster's log names a later life of the cluster."""

    FOLLOW = "follow"
    """It follows, says so and keeps the head that it had."""
    HOLD = "hold"
    """It stays fenced until people decide."""


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's configuration."""

    cluster_id: str
    broker_id: int
    controllers: tuple[str, ...]
    """URLs of some controllers; the agent learns the others from their answers."""
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None
    features: tuple[FeatureRange, ...] = ()
    log_dirs: tuple[bytes, ...] = ()
    """Directory ids, 16 bytes each."""
    previous_broker_epoch: int = -1
    """The broker epoch of the last process, if that process ended in an orderly way and everything
    that the host acknowledged is on disk; else -1. With -1 the controller takes the broker out of
    all eligible leader replicas, because it may have lost writes (KIP-966)."""
    software: str | None = None
    """The release of this process, shown to people who upgrade a cluster; None: not said."""
    session_ms: int = 9_000
    """How long the controller waits for a silent broker before it fences it."""
    heartbeat_ms: int = 2_000
    """The longest time between two fetches."""
    answer_slack_ms: int = 250
    """If a fetch is unanswered this long after its max wait, the agent asks another controller."""
    fetch_from: FetchFrom = FetchFrom.LEADER
    """`any` helps only if the controllers' setting standbys_take_heartbeats is on."""
    fetch_bytes_max: int = 4 * 1024 * 1024
    """The most bytes of batches in one answer."""
    registration_limit_ms: int = 60_000
    """If the broker is not registered by then, the agent ends."""
    stop_limit_ms: int = 300_000
    """The agent ends a controlled shutdown that takes longer than this."""
    stop_silence_ms: int = 4_000
    """The agent ends a controlled shutdown after so long without an answer of the active
    controller."""
    save_limit_ms: int = 10_000
    """How long an orderly end waits for the image to be on disk."""
    refetch_pause_ms: int = 600_000
    """The least time between two fetches of the whole log, when history or state differs."""
    head_check_ms: int = 0
    """The agent looks for the newest signed head of the log so often (ADR 0088); 0: never."""
    head_keys: tuple[bytes, ...] = ()
    """The public keys of the controllers that sign heads; empty: those under the first head that
    the agent sees."""
    new_generations: NewGenerations = NewGenerations.FOLLOW
    image_records_between_saves: int = 20_000
    """The agent saves its image after so many new records,"""
    image_ms_between_saves: int = 60_000
    """or after so long, if there are new records."""
    authorization: str = Enforcement.OFF
    """One of `metadata.acl_rules.Enforcement`: whether callers of the agent need rights for what it
    answers itself. The controllers judge what it forwards."""
    super_users: frozenset[str] = frozenset()
    """Principals that may see everything."""
    allow_if_no_acl: bool = False
    """Whether everybody may see what no access control entry is about."""


LEASE_SHARE = 0.8
"""The lease's share of a session. The controller fences the broker after a whole session; the rest
allows for clocks of different speed."""


def lease_s(session_ms: int) -> float:
    """Return the lease in seconds, counted from the sending of a request that was answered."""
    return LEASE_SHARE * session_ms / 1000


def longest_wait_ms(session_ms: int, answer_slack_ms: int) -> int:
    """Return the longest time in ms for which a controller may hold a fetch.

    One lost answer must not end the lease. The lease counts from the sending of the last *answered*
    request, whose answer came one wait later. The agent then sent the next request. If that one is
    lost, the agent notices after another wait and the slack, and repeats it, this time without a
    wait. So two waits and a slack must fit into the lease.
    """
    return (int(lease_s(session_ms) * 1000) - answer_slack_ms) // 2


def problems(config: AgentConfig) -> list[str]:
    """Return what is wrong with a configuration, one sentence for each problem; empty: nothing."""
    found = []
    if not config.cluster_id:
        found.append("cluster_id is empty; write the one of the cluster's controllers.")
    if not 0 <= config.broker_id < 2**31:
        found.append(f"broker_id is {config.broker_id}; it must be 0 or more, below 2^31.")
    if not config.controllers:
        found.append("controllers is empty; name at least one controller's URL.")
    found += [
        f"controllers has {url!r}; write a URL such as https://10.0.0.1:9191."
        for url in config.controllers
        if not url.startswith(("http://", "https://"))
    ]
    found += _endpoint_problems(config.endpoints)
    if not -1 <= config.previous_broker_epoch < 2**63:
        found.append(
            f"previous_broker_epoch is {config.previous_broker_epoch}; it must be a broker epoch, "
            "or -1 for none."
        )
    longest = longest_wait_ms(config.session_ms, config.answer_slack_ms)
    if not 10 <= config.heartbeat_ms <= longest:
        found.append(
            f"heartbeat_ms is {config.heartbeat_ms}; with session_ms {config.session_ms} it must "
            f"be 10 to {longest}, or one lost answer fences the broker."
        )
    found += [
        f"{name} is {value}; it must be at least 1."
        for name, value in (
            ("stop_limit_ms", config.stop_limit_ms),
            ("stop_silence_ms", config.stop_silence_ms),
        )
        if value < 1
    ]
    if config.answer_slack_ms < 1:
        found.append(f"answer_slack_ms is {config.answer_slack_ms}; it must be at least 1.")
    return found


def _endpoint_problems(endpoints: tuple[Endpoint, ...]) -> list[str]:
    found = []
    names = [point.name for point in endpoints]
    if len(set(names)) < len(names):
        found.append(f"endpoints has a name twice: {', '.join(sorted(names))}.")
    for point in endpoints:
        if not point.name or not point.host:
            found.append("endpoints has an entry without a name or a host; write both.")
        if not 0 < point.port < 65536:
            found.append(f"endpoint {point.name} has port {point.port}; write 1 to 65535.")
    return found
