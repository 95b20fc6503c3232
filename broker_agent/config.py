"""The configuration of an agent."""

import msgspec


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the broker's own clients reach it."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


class FeatureRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The levels of one feature that the broker's software can live with."""

    name: str
    min: int
    max: int


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's configuration."""

    cluster_id: str
    broker_id: int
    controllers: tuple[str, ...]
    """URLs of some controllers; the others are learned from their answers."""
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None
    features: tuple[FeatureRange, ...] = ()
    log_dirs: tuple[bytes, ...] = ()
    """Directory ids, 16 bytes each."""
    software: str | None = None
    """The release of this process, for people who upgrade a cluster; None: not said."""
    session_ms: int = 9_000
    heartbeat_ms: int = 2_000
    answer_slack_ms: int = 250
    """A request unanswered this long after its max wait is abandoned and sent to another."""
    fetch_bytes_max: int = 4 * 1024 * 1024
    registration_limit_ms: int = 60_000
    """Not registered by then: the process ends."""
    stop_limit_ms: int = 300_000
    """A controlled shutdown that takes longer is cut short."""
    stop_silence_ms: int = 4_000
    """A controlled shutdown ends when the active controller has not answered for so long."""
    save_limit_ms: int = 10_000
    """How long an orderly end waits for the image to be on disk."""
    refetch_pause_ms: int = 600_000
    """At least so long between two fetches of everything, when history or state differs."""
    image_records_between_saves: int = 20_000
    image_ms_between_saves: int = 60_000


LEASE_SHARE = 0.8
"""Of a session. The controller fences after a whole one; the rest is for clocks that run apart."""


def lease_s(session_ms: int) -> float:
    """How long an answer keeps the broker in service, counted from its request's sending."""
    return LEASE_SHARE * session_ms / 1000


def longest_wait_ms(session_ms: int, answer_slack_ms: int) -> int:
    """The longest time for which a fetch may be held, so that no lease ends in ordinary life.

    A lease counts from the sending of the last *answered* request. When one that is held for w is
    answered, the one before was sent 2w ago; and one that is lost must be noticed (slack) and
    repeated in time.
    """
    return (int(lease_s(session_ms) * 1000) - answer_slack_ms) // 2


def problems(config: AgentConfig) -> list[str]:
    """Say what is wrong with a configuration, a sentence each; empty when nothing is."""
    found = []
    if not config.cluster_id:
        found.append("cluster_id is empty; write the one of the cluster's controllers.")
    if not 0 <= config.broker_id < 2**31:
        found.append(f"broker_id is {config.broker_id}; it must be 0 or more, below 2^31.")
    if not config.controllers:
        found.append("controllers is empty; name at least one controller's URL.")
    found += [
        f"controllers has {url!r}; a URL such as https://10.0.0.1:9191 is meant."
        for url in config.controllers
        if not url.startswith(("http://", "https://"))
    ]
    found += _endpoint_problems(config.endpoints)
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
            found.append("endpoints has one without a name or a host; both are needed.")
        if not 0 < point.port < 65536:
            found.append(f"endpoint {point.name} has port {point.port}; 1 to 65535 is meant.")
    return found
