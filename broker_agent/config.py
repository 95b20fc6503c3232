"""What an agent is told at its start."""

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
    session_ms: int = 9_000
    heartbeat_ms: int = 2_000
    answer_slack_ms: int = 250
    """A request unanswered this long after its max wait is abandoned and sent to another."""
    fetch_bytes_max: int = 4 * 1024 * 1024
    registration_limit_ms: int = 60_000
    stop_limit_ms: int = 300_000
    image_records_between_saves: int = 20_000
    image_ms_between_saves: int = 60_000

    @property
    def lease_s(self) -> float:
        """How long an answer keeps the broker in service, counted from its request's sending."""
        return 0.8 * self.session_ms / 1000


def problems(config: AgentConfig) -> list[str]:
    """Say what is wrong with a configuration, a sentence each; empty when nothing is."""
    found = []
    if config.broker_id < 0:
        found.append(f"broker_id is {config.broker_id}; it must be 0 or more.")
    if not config.controllers:
        found.append("controllers is empty; name at least one controller's URL.")
    found += [
        f"controllers has {url!r}; a URL such as https://10.0.0.1:9191 is meant."
        for url in config.controllers
        if not url.startswith(("http://", "https://"))
    ]
    if config.heartbeat_ms * 2 > config.session_ms:
        found.append(
            f"heartbeat_ms is {config.heartbeat_ms}; it must be at most half of session_ms "
            f"({config.session_ms}), or one lost answer fences the broker."
        )
    if config.heartbeat_ms < 10:
        found.append(f"heartbeat_ms is {config.heartbeat_ms}; it must be at least 10.")
    return found
