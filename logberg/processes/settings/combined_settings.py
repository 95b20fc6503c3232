"""The settings of an agent that runs in a controller's process (combined mode).

Rule: the node's number, its cluster, its controllers, sessions, rights and log level are the
controller's; only what an agent has of its own stands in `[broker]`. The broker authenticates with
a certificate of its own: a controller's certificate names a controller, and one certificate names
one node.
"""

from pathlib import Path

from logberg.processes.broker_process import agent_config
from logberg.processes.settings.broker_settings import BrokerSettings, check_broker
from logberg.processes.settings.controller_settings import BrokerBeside, ControllerSettings
from logberg.processes.settings.settings_files import SettingsError
from logberg.processes.settings.shared_settings import host_and_port

AGENT_PORT_ABOVE = 100
"""The agent listens so far above the controller's HTTP port, unless `broker.http` says where."""


def check_beside(node: ControllerSettings) -> list[str]:
    """Say what is wrong with the agent's settings, a sentence each; empty without `[broker]`."""
    if node.broker is None:
        return []
    try:
        agent_config(broker_settings(node))
    except SettingsError as error:
        return [str(error)]
    return []


def broker_settings(node: ControllerSettings) -> BrokerSettings:
    """Return the agent's settings. Raises SettingsError, with every problem."""
    beside = node.broker
    assert beside is not None, "the node has the controller's role only"
    if found := _problems(node, beside):
        raise SettingsError(" ".join(found))
    own = node.own()
    settings = BrokerSettings(
        cluster_id=node.cluster_id,
        broker_id=node.node_id,
        data=_data(node, beside),
        # Its own controller first: it answers as soon as this node is up.
        controllers=(own.http, *(peer.http for peer in node.controllers if peer is not own)),
        http=beside.http or _http(own.http),
        endpoints=beside.endpoints,
        rack=beside.rack,
        tls=beside.tls,
        insecure_network=node.insecure_network,
        log_level=node.log_level,
        session_ms=node.session_ms,
        heartbeat_ms=node.heartbeat_ms,
        fetch_from=beside.fetch_from,
        stop_limit_ms=beside.stop_limit_ms,
        stop_silence_ms=beside.stop_silence_ms,
        holds_no_data=beside.holds_no_data,
        host_socket=beside.host_socket,
        log_dirs=beside.log_dirs,
        cluster_key=beside.cluster_key,
        kafka=beside.kafka,
        token_secret=beside.token_secret,
        authorization=node.authorization,
        super_users=node.super_users,
        allow_if_no_acl=node.allow_if_no_acl,
    )
    if found := check_broker(settings):
        raise SettingsError(" ".join(f"broker.{problem}" for problem in found))
    return settings


def _problems(node: ControllerSettings, beside: BrokerBeside) -> list[str]:
    found = []
    if node.tls is not None and beside.tls is None:
        found.append(
            "broker.tls is missing: the agent needs a certificate of its own, for the URI "
            f"broker://{node.cluster_id}/{node.node_id}. Add [broker.tls] with cert, key and ca."
        )
    if node.tls is not None and beside.tls is not None and beside.tls.cert == node.tls.cert:
        found.append(
            f"broker.tls.cert is the controller's own, {node.tls.cert}. One certificate names one "
            f"node in one role: the agent needs another one, for broker://{node.cluster_id}/"
            f"{node.node_id}."
        )
    if node.tls is None and beside.tls is not None:
        found.append(
            "broker.tls is there, but the controller has no [tls]: the agent would ask it without "
            "TLS. Add [tls], or drop [broker.tls]."
        )
    if node.kafka is not None:
        found.append(
            "[broker] and [kafka] are in one file: where controllers listen for Kafka, brokers and "
            "controllers share one space of node ids, and this agent would have the controller's. "
            "Run the agent as a process of its own, with an id that no controller has."
        )
    if Path(_data(node, beside)) == Path(node.data):
        found.append(
            "broker.data is the controller's own folder; the agent needs another one, such as "
            f"{node.data}-broker."
        )
    return found


def _data(node: ControllerSettings, beside: BrokerBeside) -> str:
    return beside.data or f"{node.data.rstrip('/')}-broker"


def _http(controller_url: str) -> str:
    host, port = host_and_port(controller_url.partition("//")[2].rstrip("/"), "controllers.http")
    above = port + AGENT_PORT_ABOVE
    if above > 65535:
        raise SettingsError(f"broker.http is missing, and {above} is no port; write broker.http.")
    return f"[{host}]:{above}" if ":" in host else f"{host}:{above}"
