"""An agent in a controller's process: where its settings come from, and what is refused."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from logberg.processes.settings.combined_settings import broker_settings, check_beside
from logberg.processes.settings.controller_settings import ControllerSettings

PEERS = [
    {"node_id": n, "quorum": f"127.0.0.1:{19090 + n}", "http": f"http://127.0.0.1:{19190 + n}"}
    for n in (1, 2, 3)
]
DIRECTORY = "CgoKCgoKCgoKCgoKCgoKCg"
TLS = {"cert": "a.crt", "key": "a.key", "ca": "ca.crt"}


def node(**settings: Any) -> ControllerSettings:
    given = {"cluster_id": "c", "node_id": 2, "data": "data", "controllers": PEERS, **settings}
    return msgspec.convert(given, ControllerSettings)


def test_the_agent_has_the_controllers_number_cluster_and_times() -> None:
    settings = broker_settings(
        node(broker={}, session_ms=6_000, heartbeat_ms=1_000, log_level="debug")
    )
    assert (settings.cluster_id, settings.broker_id) == ("c", 2)
    assert (settings.session_ms, settings.heartbeat_ms) == (6_000, 1_000)
    assert settings.log_level == "debug"


def test_the_agent_asks_its_own_controller_first() -> None:
    assert broker_settings(node(broker={})).controllers == (
        "http://127.0.0.1:19192",
        "http://127.0.0.1:19191",
        "http://127.0.0.1:19193",
    )


def test_the_flag_gives_defaults_and_keeps_what_the_file_says() -> None:
    assert broker_settings(node().with_broker()).rack is None
    assert broker_settings(node(broker={"rack": "b"}).with_broker()).rack == "b"


@pytest.mark.parametrize(
    ("beside", "data", "http"),
    [
        ({}, "data-broker", "127.0.0.1:19292"),
        ({"data": "agent", "http": "127.0.0.1:9"}, "agent", "127.0.0.1:9"),
    ],
)
def test_folder_and_port_follow_the_controllers_own(
    beside: dict[str, Any], data: str, http: str
) -> None:
    settings = broker_settings(node(broker=beside))
    assert (settings.data, settings.http) == (data, http)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"broker": {}, "tls": TLS}, "broker.tls is missing"),
        ({"broker": {}, "tls": TLS}, "broker://c/2"),
        ({"broker": {"tls": TLS}}, "drop [broker.tls]"),
        ({"broker": {"tls": TLS}, "tls": TLS}, "names one node in one role"),
        ({"broker": {}, "kafka": {"listen": "127.0.0.1:9093"}}, "share one space of node ids"),
        ({"broker": {"data": "data"}}, "the controller's own folder"),
        ({"broker": {"data": "./data/"}}, "the controller's own folder"),
        ({"broker": {"http": "nowhere"}}, "broker.http is 'nowhere'; use host:port"),
        ({"broker": {"stop_limit_ms": 0}}, "stop_limit_ms is 0"),
        ({"broker": {"fetch_from": "all"}}, "fetch_from is 'all'; use one of leader, any"),
        ({"broker": {"log_dirs": ["data-1"]}}, "broker.log_dirs has 'data-1'"),
        ({"broker": {"log_dirs": [DIRECTORY, DIRECTORY]}}, "broker.log_dirs has an id twice"),
        ({"broker": {"cluster_key": "cluster.key"}}, "write host_socket too"),
        ({"broker": {"endpoints": [{"name": "A", "host": "", "port": 1}]}}, "without a name"),
        (
            {
                "controllers": [
                    {"node_id": 2, "quorum": "h:1", "http": "http://h:65500"},
                ],
                "broker": {},
            },
            "65600 is no port; write broker.http",
        ),
    ],
)
def test_every_problem_is_a_sentence(settings: dict[str, Any], said: str) -> None:
    problems = check_beside(node(**settings))
    assert any(said in problem for problem in problems), problems


def test_the_agent_gets_the_settings_for_its_host_and_no_key_that_is_not_named() -> None:
    beside = {"host_socket": "host.sock", "log_dirs": [DIRECTORY]}
    settings = broker_settings(node(broker=beside, cluster_key="cluster.key"))
    assert (settings.host_socket, settings.log_dirs) == ("host.sock", (DIRECTORY,))
    assert settings.cluster_key is None
    named = node(broker={**beside, "cluster_key": "cluster.key"})
    assert broker_settings(named).cluster_key == "cluster.key"
    assert check_beside(named) == []


def test_a_node_without_the_brokers_role_has_no_problems() -> None:
    assert check_beside(node()) == []
    assert check_beside(node(broker={"data": str(Path("elsewhere"))})) == []
