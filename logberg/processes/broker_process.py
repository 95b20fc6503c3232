"""A broker agent's process: its settings in, an exit code out."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from broker_agent.config import AgentConfig, Endpoint, FetchFrom, NewGenerations, problems
from broker_agent.own_server import OwnServer
from broker_agent.process import AgentTls, run_broker
from ledger.merkle.notes import NoteKey
from logberg.processes import node_figures
from logberg.processes.agent_door import agent_door
from logberg.processes.certificates_in_use import CertificatesInUse
from logberg.processes.cluster_key import load_brokers_key
from logberg.processes.enforcement import agent_enforcement
from logberg.processes.log_level import follow_signals
from logberg.processes.principals import Principals, error_answer
from logberg.processes.settings.broker_settings import BrokerSettings
from logberg.processes.settings.key_notes import KeyNote, log_notes
from logberg.processes.settings.settings_files import SettingsError, resolve
from logberg.processes.settings.shared_settings import SECURITY_PROTOCOLS, host_and_port
from logberg.processes.supervision import supervised
from logberg.processes.tls_files import tls_files
from logberg.version import VERSION
from metadata.acl_rules import Enforcement
from metadata.sealing import ClusterKey
from metadata.uuids import parse_uuid
from runtime import asyncio_clock
from runtime.defects import watch_loop
from runtime.logging import configure
from runtime.loop import collection
from runtime.sockets.descriptors import raise_limit
from runtime.sockets.tls import client_context, server_context


def agent_config(settings: BrokerSettings) -> AgentConfig:
    """The agent's part of its settings. Raises SettingsError."""
    config = AgentConfig(
        cluster_id=settings.cluster_id,
        broker_id=settings.broker_id,
        controllers=settings.controllers,
        endpoints=(*_endpoints(settings), *_kafka_endpoint(settings)),
        rack=settings.rack,
        log_dirs=tuple(map(parse_uuid, settings.log_dirs)),
        software=VERSION,
        session_ms=settings.session_ms,
        heartbeat_ms=settings.heartbeat_ms,
        fetch_from=FetchFrom(settings.fetch_from),
        stop_limit_ms=settings.stop_limit_ms,
        stop_silence_ms=settings.stop_silence_ms,
        head_check_ms=settings.head_check_ms,
        head_keys=tuple(NoteKey.parse(line).public for line in settings.head_keys),
        new_generations=NewGenerations(settings.new_generations),
        authorization=settings.authorization or Enforcement.ON.value,
        super_users=frozenset(settings.super_users),
        allow_if_no_acl=settings.allow_if_no_acl,
    )
    if found := problems(config):
        raise SettingsError(" ".join(found))
    return config


def _endpoints(settings: BrokerSettings) -> Iterator[Endpoint]:
    for point in settings.endpoints:
        protocol = SECURITY_PROTOCOLS.index(point.security_protocol)
        yield Endpoint(point.name, point.host, point.port, protocol)


def _kafka_endpoint(settings: BrokerSettings) -> Iterator[Endpoint]:
    """Yield where Kafka's clients reach the agent. Raises SettingsError."""
    address = settings.kafka_address()
    if settings.kafka is None or address is None:
        return
    protocol = "SASL_SSL" if settings.kafka.sasl_mechanisms else "SSL"
    if settings.tls is None:
        protocol = "PLAINTEXT"
    yield Endpoint(settings.kafka.listener_name, *address, SECURITY_PROTOCOLS.index(protocol))


class AgentParts(NamedTuple):
    """What an agent's process hands to the agent."""

    config: AgentConfig
    data: Path
    server: OwnServer
    """Without its TLS context, which `read_tls` gives."""
    read_tls: Callable[[], AgentTls] | None
    """None: without TLS."""
    cluster_key: ClusterKey | None


def agent_parts(settings: BrokerSettings, config_file: Path) -> AgentParts:
    """Return an agent's parts. Only the cluster key is read. Raises SettingsError."""
    config = agent_config(settings)
    host, port = host_and_port(settings.http, "http")

    certificates = CertificatesInUse()

    def read_tls() -> AgentTls:
        assert settings.tls is not None
        files = tls_files(settings.tls, config_file)
        contexts = AgentTls(client_context(files.ca, files), server_context(files))
        certificates.loaded(files)
        return contexts

    principals = Principals(settings.cluster_id)
    authenticate = principals.authenticate
    server = OwnServer(
        host,
        port,
        authenticate,
        error_answer,
        insecure_network=settings.insecure_network,
        # Without TLS nobody can show who they are; the controllers decide then.
        forward_anonymous=settings.tls is None,
        host_socket=None
        if settings.host_socket is None
        else resolve(config_file, settings.host_socket),
        beside=None
        if settings.kafka is None
        else agent_door(
            settings.kafka,
            host_and_port(settings.kafka.listen, "kafka.listen"),
            authenticate,
            insecure_network=settings.insecure_network,
        ),
        follow=principals.follow,
        show=lambda registry: node_figures.declare(registry, certificates),
    )
    data = resolve(config_file, settings.data)
    return AgentParts(
        config,
        data,
        server,
        None if settings.tls is None else read_tls,
        load_brokers_key(settings, config_file),
    )


def run_broker_process(
    settings: BrokerSettings, config_file: Path, notes: tuple[KeyNote, ...] = ()
) -> int:
    """Run an agent in the foreground. Returns the exit code. `notes`: to log at the start."""
    settings = agent_enforcement(settings, resolve(config_file, settings.data))
    parts = agent_parts(settings, config_file)

    async def run() -> int:
        loop = asyncio.get_running_loop()
        log = configure(settings.log_level, broker_id=settings.broker_id)
        log_notes(notes, log)
        if settings.authorization != Enforcement.ON:
            log.warning("authorization_not_enforced", setting=settings.authorization)
        watch_loop(loop)
        clock = asyncio_clock.of_running_loop()
        collection.keep_tended(clock)
        follow_signals(loop, settings.log_level)
        return await run_broker(
            parts.config,
            data=parts.data,
            server=parts.server,
            holds_no_data=settings.holds_no_data,
            cluster_key=parts.cluster_key,
            read_tls=parts.read_tls,
            supervise=lambda look: supervised(clock, look, log),
            log=log,
        )

    raise_limit()
    return asyncio.run(run())
