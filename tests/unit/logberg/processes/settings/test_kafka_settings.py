"""`[kafka]` of an agent: what is refused, and which endpoint the broker registers."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from logberg.local.toml_text import to_toml
from logberg.processes.broker_process import agent_config
from logberg.processes.settings.broker_settings import BrokerSettings, check_broker
from logberg.processes.settings.combined_settings import broker_settings
from logberg.processes.settings.controller_checks import check_controller
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import SettingsError, load

TLS = {"cert": "a.crt", "key": "a.key", "ca": "ca.crt"}
SCRAM = ["SCRAM-SHA-256"]


def agent(kafka: dict[str, Any], **settings: Any) -> BrokerSettings:
    given = {
        "cluster_id": "c",
        "broker_id": 7,
        "data": "data",
        "controllers": ["https://127.0.0.1:1"],
        "http": "127.0.0.1:2",
        "kafka": {"listen": "127.0.0.1:3", **kafka},
        **settings,
    }
    return msgspec.convert(given, BrokerSettings)


def endpoints(settings: BrokerSettings) -> list[tuple[str, str, int, int]]:
    assert check_broker(settings) == []
    found = agent_config(settings).endpoints
    return [(e.name, e.host, e.port, e.security_protocol) for e in found]


def test_the_listener_is_an_endpoint_of_the_broker() -> None:
    assert endpoints(agent({})) == [("CLIENTS", "127.0.0.1", 3, 0)]
    named = {"listener_name": "EXTERNAL", "advertised": "kafka.example:9092"}
    before = [{"name": "DATA", "host": "h", "port": 4}]
    assert endpoints(agent(named, endpoints=before, tls=TLS)) == [
        ("DATA", "h", 4, 0),
        ("EXTERNAL", "kafka.example", 9092, 1),
    ]
    secured = agent({"sasl_mechanisms": ["PLAIN", *SCRAM]}, tls=TLS, cluster_key="key")
    assert endpoints(secured) == [("CLIENTS", "127.0.0.1", 3, 3)]


@pytest.mark.parametrize(
    ("kafka", "settings", "said"),
    [
        ({"listen": "9092"}, {}, "kafka.listen is '9092'; use host:port"),
        ({"advertised": "here"}, {}, "kafka.advertised is 'here'; use host:port"),
        ({"listen": "10.0.0.1:9092"}, {}, r"beyond this machine it needs \[tls\]"),
        ({"listen": "0.0.0.0:9092"}, {"tls": TLS}, "clients can't connect to 0.0.0.0"),
        ({"listener_name": ""}, {}, "kafka.listener_name must have 1 to 249"),
        ({"advertised": "h" * 129 + ":1"}, {}, "more than 128 characters"),
        ({"sasl_mechanisms": ["GSSAPI"]}, {"tls": TLS}, "'GSSAPI' is not known; use PLAIN"),
        ({"sasl_mechanisms": ["PLAIN"]}, {}, r"PLAIN sends a token in clear, so it needs \[tls\]"),
        ({"sasl_mechanisms": SCRAM}, {"cluster_key": "k"}, r"SCRAM-SHA-256 needs \[tls\]"),
        ({"sasl_mechanisms": SCRAM}, {"tls": TLS}, "SCRAM-SHA-256 needs cluster_key"),
        ({"configs": {"log.retention.hours": "two"}}, {}, "kafka.configs: Invalid value two"),
        (
            {},
            {"endpoints": [{"name": "CLIENTS", "host": "h", "port": 1}]},
            "kafka.listener_name is CLIENTS, which endpoints has, too",
        ),
        ({}, {"cluster_key": "k"}, "nobody could ask for a secret"),
    ],
)
def test_every_problem_is_a_sentence(
    kafka: dict[str, Any], settings: dict[str, Any], said: str
) -> None:
    found = check_broker(agent(kafka, **settings))
    assert len(found) == 1, found
    assert re.search(said, found[0]), found


@pytest.mark.parametrize(
    ("settings", "fits"),
    [
        ({"tls": TLS, "authorization": "on"}, True),
        ({"tls": TLS, "authorization": "log-only"}, True),
        ({"tls": TLS, "authorization": "off"}, False),
        ({"authorization": "on"}, False),
        ({"host_socket": "host.sock"}, True),
    ],
)
def test_the_cluster_key_is_for_logins_and_for_people_who_show_certificates(
    settings: dict[str, Any], fits: bool
) -> None:
    found = check_broker(agent({}, cluster_key="k", **settings))
    assert ["cluster_key" in problem for problem in found] == [True] * (not fits)


def test_a_trusted_network_needs_no_tls() -> None:
    assert check_broker(agent({"listen": "10.0.0.1:9092"}, insecure_network=True)) == []


def test_a_file_with_the_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "broker.toml"
    settings = msgspec.to_builtins(agent({"sasl_mechanisms": SCRAM}, tls=TLS, cluster_key="k"))
    path.write_text(to_toml({key: value for key, value in settings.items() if value is not None}))
    assert load(path, BrokerSettings).kafka == agent({"sasl_mechanisms": SCRAM}).kafka
    path.write_text(path.read_text().replace("sasl_mechanisms", "mechanisms"))
    with pytest.raises(SettingsError, match=r"mechanisms.*at `\$.kafka`"):
        load(path, BrokerSettings)


def node(broker: dict[str, Any], **settings: Any) -> ControllerSettings:
    given = {
        "cluster_id": "c",
        "node_id": 1,
        "data": "data",
        "controllers": [{"node_id": 1, "quorum": "127.0.0.1:1", "http": "http://127.0.0.1:2"}],
        "broker": broker,
        **settings,
    }
    return msgspec.convert(given, ControllerSettings)


def test_in_combined_mode_the_table_stands_within_broker() -> None:
    settings = broker_settings(node({"kafka": {"listen": "127.0.0.1:3"}}))
    assert endpoints(settings) == [("CLIENTS", "127.0.0.1", 3, 0)]
    with pytest.raises(SettingsError, match=r"broker\.kafka\.listen is '3'"):
        broker_settings(node({"kafka": {"listen": "3"}}))


def test_a_controller_advertises_an_address_that_brokers_can_use() -> None:
    kafka = {"listen": "0.0.0.0:9093"}
    (said,) = check_controller(node({}, kafka=kafka, insecure_network=True))
    assert said.startswith("kafka.advertised is missing: brokers can't connect to 0.0.0.0")
    kafka["advertised"] = "controller.example:9093"
    assert check_controller(node({}, kafka=kafka, insecure_network=True)) == []
