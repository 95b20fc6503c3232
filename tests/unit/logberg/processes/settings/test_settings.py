"""Configuration files: every problem is named with what to write instead."""

import ast
from pathlib import Path

import msgspec
import pytest

import logberg
from controller.config import CoordinationLimits
from logberg.local.toml_text import to_toml
from logberg.processes.settings.broker_settings import BrokerSettings
from logberg.processes.settings.controller_checks import check_controller
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.coordination_settings import (
    CoordinationSettings,
    coordination_limits,
)
from logberg.processes.settings.settings_files import SettingsError, load
from logberg.processes.settings.shared_settings import host_and_port

GOOD = {
    "cluster_id": "c",
    "node_id": 1,
    "data": "data",
    "controllers": [{"node_id": 1, "quorum": "127.0.0.1:1", "http": "http://127.0.0.1:2"}],
}


def write(folder: Path, **changes: object) -> Path:
    path = folder / "controller.toml"
    path.write_text(to_toml({**GOOD, **changes}))
    return path


@pytest.mark.parametrize("kind", [ControllerSettings, BrokerSettings, CoordinationSettings])
def test_every_setting_is_used(kind: type[msgspec.Struct]) -> None:
    """A key that the file may hold and that nobody reads would be ignored in silence."""
    used = set()
    for path in Path(logberg.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            of = node.value if isinstance(node, ast.Attribute) else None
            named = getattr(of, "id", "") or getattr(of, "attr", "")
            if isinstance(node, ast.Attribute) and named in ("settings", "_settings", "self"):
                used.add(node.attr)
    assert set(kind.__struct_fields__) - used == set()


def test_a_good_file_is_read_whole(tmp_path: Path) -> None:
    settings = load(write(tmp_path, session_ms=6000), ControllerSettings)
    assert settings.session_ms == 6000
    assert settings.own().quorum == "127.0.0.1:1"
    assert check_controller(settings) == []


def test_a_misspelt_key_is_refused_and_the_known_ones_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"sesion_ms.*Known keys: cluster_id"):
        load(write(tmp_path, sesion_ms=3000), ControllerSettings)


def test_a_value_of_another_kind_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"Expected `int`, got `str` - at `\$\.node_id`"):
        load(write(tmp_path, node_id="one"), ControllerSettings)


def test_what_is_no_toml_says_where(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("cluster_id = \n")
    with pytest.raises(SettingsError, match=r"not valid TOML.*line 1"):
        load(path, ControllerSettings)


def test_a_missing_file_names_the_option(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="--config"):
        load(tmp_path / "none.toml", ControllerSettings)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"node_id": 7}, "every controller must be listed"),
        ({"cluster_id": ""}, "logberg cluster-id"),
        ({"cluster_id": "c" * 65}, "longer than 64"),
        ({"heartbeat_ms": 5000}, "at most half of session_ms"),
        ({"log_level": "loud"}, "use one of debug"),
        (
            {
                "controllers": [
                    {"node_id": 1, "quorum": "h:1", "http": "http://x:1", "role": "observer"}
                ]
            },
            "controllers lists observers only",
        ),
        (
            {"controllers": [{"node_id": 1, "quorum": "localhost", "http": "http://x:1"}]},
            "use host:port",
        ),
        (
            {"controllers": [{"node_id": 1, "quorum": "h:1", "http": "h:2"}]},
            "a URL such as",
        ),
        ({"tokens": [{"principal": "User:a", "sha256": "xyz"}]}, "64 hexadecimal digits"),
        ({"super_users": ["alice"]}, "super_users: the principal 'alice' is not valid"),
        ({"attempts_interval_ms": 9}, "attempts_interval_ms is 9; it must be 100 or more"),
        (
            {"attempts_bytes_per_minute": 1_000},
            "attempts_bytes_per_minute is 1000; it must be 32768 or more",
        ),
        ({"authorization": "yes"}, "authorization is 'yes'; use one of off, log-only, on"),
        (
            {"kafka": {"listen": "127.0.0.1:1", "broker_users": {"kafka-7": 7}}},
            "kafka.broker_users has no effect without SCRAM",
        ),
        (
            {"kafka": {"listen": "127.0.0.1:1", "broker_users": {"a": 7, "b": 7}}},
            "two users are the same broker",
        ),
        (
            {"kafka": {"listen": "127.0.0.1:1", "broker_users": {"a": -7}}},
            "'a' is broker -7; a broker's number is 0 or more",
        ),
        ({"backups": {"where": "b", "every_ms": 10}}, "backups.every_ms is 10; it must be 1000"),
        ({"backups": {"where": "b", "keep": 0}}, "backups.keep is 0; it must be 1 or more"),
        ({"backups": {"where": "ftp://a/b"}}, "use a folder or s3://BUCKET/PATH"),
        ({"backups": {"where": ""}}, "backups.where names no place"),
        ({"archive": {"to": "a", "keep_bytes": -1}}, "archive.keep_bytes is -1; it must be 0"),
        ({"archive": {"to": "a", "every_ms": 1}}, "archive.every_ms is 1; it must be 100 or more"),
        ({"tracing": {"endpoint": "127.0.0.1:4318"}}, "use a collector's URL, such as http://"),
        (
            {"tracing": {"endpoint": "http://a/v1/traces", "sample": 2.0}},
            "tracing.sample is 2.0; it must be 0 to 1",
        ),
        ({"archive": {"to": "ftp://a/b"}}, "archive.to names no place; use a folder or s3://"),
    ],
)
def test_every_problem_is_a_sentence(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    problems = check_controller(load(write(tmp_path, **changes), ControllerSettings))
    assert any(said in problem for problem in problems), problems


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:0", "host:65536", "host:x"])
def test_an_address_without_host_or_port_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="use host:port"):
        host_and_port(text, "quorum")


def test_an_ipv6_address_keeps_its_colons() -> None:
    assert host_and_port("[::1]:9091", "quorum") == ("::1", 9091)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('"min.insync.replicas" = "2"', None),
        ('"min.insync.replicas" = "0"', "configs: Invalid value 0 for configuration min.insync"),
        ('"log.retention.hours" = "two"', "Not a number of type INT."),
        (
            '"num.partitions" = "2"',
            "num.partitions has no effect there; write the setting default_p",
        ),
        ('"min.insnc.replicas" = "2"', "configs: min.insnc.replicas is not a config of Kafka's"),
    ],
)
def test_kafkas_own_keys_are_checked(tmp_path: Path, line: str, said: str | None) -> None:
    path = write(tmp_path)
    path.write_text(f"{path.read_text()}\n[configs]\n{line}\n")
    problems = check_controller(load(path, ControllerSettings))
    assert problems == [] if said is None else any(said in problem for problem in problems)


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ({}, None),
        ({"metadata.version": 21, "logberg.version": 1}, None),
        ({"metadata.version": 99}, "initial_features: metadata.version 99: this build supports"),
        ({"no.such": 1}, "initial_features: there is no feature 'no.such'"),
    ],
)
def test_first_levels_are_checked(tmp_path: Path, levels: dict[str, int], said: str | None) -> None:
    settings = load(write(tmp_path, initial_features=levels), ControllerSettings)
    assert settings.initial_features == levels
    problems = check_controller(settings)
    assert problems == [] if said is None else any(said in problem for problem in problems)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sessions = 100", None),
        ("ttl_min_ms = 1000\nttl_max_ms = 1000", None),
        ("ttl_min_ms = 1", "coordination.ttl_min_ms is 1; use 100 to 3600000."),
        ("ttl_max_ms = 400", "coordination.ttl_min_ms is 500; it must be at most ttl_max_ms (400)"),
        ("value_bytes = 1048576", "coordination.value_bytes is 1048576; use 0 to 1015808."),
        ("keys = -1", "coordination.keys is -1; use 0 to 10000000."),
        ("watch_scopes = 0", "coordination.watch_scopes is 0; use 1 to 1000."),
    ],
)
def test_limits_of_coordination_are_checked(tmp_path: Path, line: str, said: str | None) -> None:
    path = write(tmp_path)
    path.write_text(f"{path.read_text()}\n[coordination]\n{line}\n")
    problems = check_controller(load(path, ControllerSettings))
    assert problems == [] if said is None else any(said in problem for problem in problems)


def test_a_file_without_limits_of_coordination_means_the_controllers_own() -> None:
    assert coordination_limits(None) == CoordinationLimits()
    assert coordination_limits(CoordinationSettings()) == CoordinationLimits()
    fewer = coordination_limits(CoordinationSettings(sessions=7, value_bytes=8))
    assert (fewer.sessions, fewer.value_bytes) == (7, 8)
