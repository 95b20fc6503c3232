"""Settings of a broker's agent: what its file may say, and what is wrong with it.

Rule: the whole file is checked before anything starts, and all problems are reported together.
"""

import msgspec

from logberg.processes.settings.kafka_settings import AgentKafkaSettings, agent_kafka_problems
from logberg.processes.settings.shared_settings import (
    SECURITY_PROTOCOLS,
    BrokerEndpoint,
    Tls,
    access_problems,
    address_problems,
    kafka_listener_problems,
    log_level_problems,
    reached_at,
)
from metadata.acl_rules import Enforcement
from metadata.uuids import parse_uuid

FETCH_FROM = ("leader", "any")
NEW_GENERATIONS = ("follow", "hold")
_JUDGES = (Enforcement.ON, Enforcement.LOG_ONLY)


class BrokerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`logberg broker --config FILE`."""

    cluster_id: str
    """The cluster's."""
    broker_id: int
    """This broker's number, 0 or more."""
    data: str
    """The agent's folder, of its own."""
    controllers: tuple[str, ...]
    """URLs of some controllers; the others are learned from their answers."""
    http: str
    """host:port of the agent's own HTTP listener."""
    endpoints: tuple[BrokerEndpoint, ...] = ()
    """Where the broker's clients reach it."""
    rack: str | None = None
    """Replicas of a partition are spread over racks."""
    tls: Tls | None = None
    """Certificates; the broker authenticates with its own."""
    insecure_network: bool = False
    """Listen beyond this machine without TLS; also --insecure-network."""
    log_level: str = "info"
    """debug, info, warning or error."""
    session_ms: int = 9_000
    """The agent fences itself after 0.8 of the shorter of this and the controllers' own."""
    heartbeat_ms: int = 2_000
    """The longest time that a fetch may be held."""
    fetch_from: str = "leader"
    """leader, or any: heartbeats go to a controller by broker id, and after an error to the leader.
    It helps where the controllers have standbys_take_heartbeats."""
    stop_limit_ms: int = 300_000
    """The agent ends a controlled shutdown that takes longer."""
    stop_silence_ms: int = 4_000
    """A controlled shutdown ends when the active controller has not answered for so long."""
    holds_no_data: bool = False
    """For brokers without data, as those of `logberg up`: the agent puts every online replica into
    the ISRs of partitions that the broker leads. Never set it for a broker that replicates data."""
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
    head_check_ms: int = 60_000
    """The agent looks for the newest signed head of the log so often, and keeps it; 0: never."""
    head_keys: tuple[str, ...] = ()
    """The lines in the controllers' head.pub: only heads that a majority of them signed count.
    Default: the keys under the first head that the agent sees."""
    new_generations: str = "follow"
    """When the log says that the cluster was restored or recovered: follow it, or hold, which
    leaves the broker fenced until people decide."""
    authorization: str = ""
    """on: a client sees what it may describe; log-only: what would be refused is logged; off:
    everybody who is let in sees all metadata. As in the controllers' files. A new agent's file must
    say it; one whose folder was used before is off without it."""
    super_users: tuple[str, ...] = ()
    """Principals that may see everything, as in the controllers' files."""
    allow_if_no_acl: bool = False
    """Everybody may see what no entry is about, as in the controllers' files."""

    def kafka_address(self) -> tuple[str, int] | None:
        """Host and port at which Kafka's clients reach the agent. Raises SettingsError."""
        return None if self.kafka is None else reached_at(self.kafka)


def check_broker(settings: BrokerSettings) -> list[str]:
    """Say what is wrong with a broker's settings, a sentence each."""
    found = log_level_problems(settings.log_level)
    found += access_problems(settings.authorization, settings.super_users)
    if settings.fetch_from not in FETCH_FROM:
        found.append(f"fetch_from is {settings.fetch_from!r}; use one of {', '.join(FETCH_FROM)}.")
    found += _head_problems(settings)
    found += address_problems([settings.http], "http")
    found += [
        f"endpoints.security_protocol is {point.security_protocol!r}; use one of "
        f"{', '.join(SECURITY_PROTOCOLS)}."
        for point in settings.endpoints
        if point.security_protocol not in SECURITY_PROTOCOLS
    ]
    found += [
        f"log_dirs has {text!r}; write the directory's id, 22 characters, such as "
        "`logberg cluster-id` draws."
        for text in settings.log_dirs
        if not _is_uuid(text)
    ]
    if len(set(settings.log_dirs)) < len(settings.log_dirs):
        found.append("log_dirs has an id twice; each directory has its own.")
    found += _kafka_problems(settings)
    if settings.cluster_key is not None and not _needs_key(settings):
        found.append(
            "cluster_key is given, but nobody could ask for a secret, and nobody's certificate is "
            "judged: write host_socket too, or kafka.sasl_mechanisms, or [tls] and authorization, "
            "or drop cluster_key."
        )
    return found


def _needs_key(settings: BrokerSettings) -> bool:
    """Return whether the agent could use the cluster key."""
    logs_in = settings.kafka is not None and settings.kafka.sasl_mechanisms
    judges = settings.tls is not None and settings.authorization in _JUDGES
    return bool(settings.host_socket is not None or logs_in or judges)


def _head_problems(settings: BrokerSettings) -> list[str]:
    # Whoever only reads settings starts faster without this.
    from ledger.merkle.heads import origin_of  # noqa: PLC0415
    from ledger.merkle.notes import NoteError, NoteKey  # noqa: PLC0415

    found = []
    if settings.head_check_ms < 0:
        found.append(f"head_check_ms is {settings.head_check_ms}; it must be 0 or more.")
    if settings.new_generations not in NEW_GENERATIONS:
        found.append(
            f"new_generations is {settings.new_generations!r}; use one of "
            f"{', '.join(NEW_GENERATIONS)}."
        )
    for line in settings.head_keys:
        try:
            name = NoteKey.parse(line).name
        except NoteError as error:
            found.append(f"head_keys: {error}.")
            continue
        if name != origin_of(settings.cluster_id):
            found.append(f"head_keys has a key of {name}, another cluster.")
    return found


def _kafka_problems(settings: BrokerSettings) -> list[str]:
    kafka = settings.kafka
    if kafka is None:
        return []

    def problems_at(address: tuple[str, int]) -> list[str]:
        found = agent_kafka_problems(
            kafka,
            address,
            tls=settings.tls is not None,
            cluster_key=settings.cluster_key is not None,
            insecure_network=settings.insecure_network,
        )
        name = kafka.listener_name
        if name in {point.name for point in settings.endpoints}:
            found.append(
                f"kafka.listener_name is {name}, which endpoints has, too: the listener registers "
                "its address itself, so drop that entry or write another name."
            )
        return found

    return kafka_listener_problems(kafka, problems_at)


def _is_uuid(text: str) -> bool:
    try:
        parse_uuid(text)
    except ValueError:
        return False
    return True
