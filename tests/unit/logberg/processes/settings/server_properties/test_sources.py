"""Where a value comes from: file, environment, command line, TOML; and what the log says."""

from pathlib import Path

import pytest

from logberg.processes.settings.key_notes import NoteKind
from logberg.processes.settings.node_settings import NodeOptions, load_controller
from logberg.processes.settings.server_properties.sources import gather
from logberg.processes.settings.server_properties.syntax import Properties, parse
from logberg.processes.settings.settings_files import SettingsError
from tests.unit.logberg.processes.settings.server_properties.files import BASE, controller, write

KEY = "broker.session.timeout.ms"
FILE = {KEY: "10000"}
TOML = "session_ms = 20000\n"
VARIABLE = {"KAFKA_BROKER_SESSION_TIMEOUT_MS": "30000"}
OPTION = (f"{KEY}=40000",)


@pytest.mark.parametrize(
    ("file", "toml", "environment", "overrides", "expected"),
    [
        ({}, "", {}, (), 9_000),
        (FILE, "", {}, (), 10_000),
        (FILE, TOML, {}, (), 20_000),
        (FILE, TOML, VARIABLE, (), 30_000),
        (FILE, TOML, VARIABLE, OPTION, 40_000),
        (FILE, "", VARIABLE, (), 30_000),
        (FILE, "", {}, OPTION, 40_000),
        ({}, TOML, {}, OPTION, 40_000),
    ],
    ids=["default", "file", "toml", "variable", "option", "no-toml", "no-variable", "no-file"],
)
def test_the_stronger_source_wins(
    tmp_path: Path,
    file: dict[str, str],
    toml: str,
    environment: dict[str, str],
    overrides: tuple[str, ...],
    expected: int,
) -> None:
    loaded = controller(tmp_path, file, toml=toml, environment=environment, overrides=overrides)
    assert loaded.settings.session_ms == expected


def test_tables_are_joined_key_by_key(tmp_path: Path) -> None:
    toml = '[configs]\n"log.retention.hours" = "1"\n"log.roll.hours" = "2"\n'
    file = {"log.retention.hours": "9", "min.insync.replicas": "2"}
    assert controller(tmp_path, file, toml=toml).settings.configs == {
        "log.retention.hours": "1",
        "log.roll.hours": "2",
        "min.insync.replicas": "2",
    }


def test_one_key_of_several_from_the_command_line_makes_the_setting_its_own(tmp_path: Path) -> None:
    """The controllers are made of several keys; the strongest of them decides."""
    toml = '[[controllers]]\nnode_id = 2\nquorum = "t:1"\nhttp = "http://t:2"\n'
    assert controller(tmp_path, {}, toml=toml).settings.own().quorum == "t:1"
    voters = ("controller.quorum.voters=2@c:9093",)
    assert controller(tmp_path, {}, toml=toml, overrides=voters).settings.own().quorum == "c:9093"


def test_variables_count_only_beside_kafkas_file(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text(
        'cluster_id = "c"\nnode_id = 1\ndata = "d"\n'
        '[[controllers]]\nnode_id = 1\nquorum = "127.0.0.1:1"\nhttp = "http://127.0.0.1:2"\n'
    )
    assert load_controller(NodeOptions((path,)), VARIABLE).settings.session_ms == 9_000
    # An option says what it is about, so it counts without Kafka's file too.
    options = NodeOptions((path,), OPTION)
    assert load_controller(options, VARIABLE).settings.session_ms == 40_000
    assert load_controller(options, VARIABLE).settings.default_replication_factor == 3


@pytest.mark.parametrize(
    ("variable", "taken"),
    [
        ("KAFKA_NUM_PARTITIONS", True),
        ("KAFKA_LISTENER_NAME_CONTROLLER_SSL_KEYSTORE_LOCATION", True),
        ("KAFKA_LOGBERG_BROKER_HTTP", True),
        ("NUM_PARTITIONS", False),
        ("KAFKA_HEAP_OPTS", False),
    ],
)
def test_which_variables_are_keys(variable: str, taken: bool) -> None:
    found = gather(Properties({}, ()), {variable: "7"}, ())
    assert [given.place for given in found.values.values()] == [variable] * taken
    assert found.notes == ()


def test_a_misspelt_variable_is_reported(tmp_path: Path) -> None:
    notes = controller(tmp_path, {}, environment={"KAFKA_NUM_PARTITION": "7"}).notes
    assert [(note.kind, note.place, note.why) for note in notes] == [
        (NoteKind.UNKNOWN, "KAFKA_NUM_PARTITION", "did you mean num.partitions?")
    ]


def test_the_clusters_variable_is_that_of_kafkas_images(tmp_path: Path) -> None:
    loaded = controller(tmp_path, {"logberg.cluster.id": None}, environment={"CLUSTER_ID": "e"})
    assert loaded.settings.cluster_id == "e"


@pytest.mark.parametrize(
    ("roles", "toml", "flag", "both"),
    [
        ("controller", "", False, False),
        ("broker,controller", "", False, True),
        ("controller", "", True, True),
        ("controller", '[broker]\nhttp = "127.0.0.1:1"\n', False, True),
    ],
)
def test_what_gives_a_node_both_roles(
    tmp_path: Path, roles: str, toml: str, flag: bool, both: bool
) -> None:
    file = {"process.roles": roles, "log.dirs": "l"}
    settings = controller(tmp_path, file, toml=toml, with_broker=flag).settings
    assert (settings.broker is not None) is both


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a.toml", "b.toml"), "one of each"),
        (("a.properties", "b.properties"), "one of each"),
        ((), "one of each"),
        (("none.properties",), "can't be read"),
    ],
)
def test_files_that_don_t_go_together(tmp_path: Path, names: tuple[str, ...], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load_controller(NodeOptions(tuple(tmp_path / name for name in names)), {})


def test_an_option_without_an_equals_sign(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="write key=value"):
        controller(tmp_path, {}, overrides=("num.partitions",))


def test_a_key_of_toml_that_is_misspelt_is_refused_beside_kafkas_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"sesion_ms.*Known keys"):
        controller(tmp_path, {}, toml="sesion_ms = 1\n")


def test_the_log_says_what_is_not_used(tmp_path: Path) -> None:
    path = write(tmp_path, {**BASE, "num.io.threads": "8", "num.partition": "3", "x.y": "1"})
    path.write_text(f"{path.read_text()}node.id=3\n")
    notes = load_controller(NodeOptions((path,)), {}).notes
    assert [(note.kind, note.key, note.place) for note in notes] == [
        (NoteKind.DUPLICATE, "node.id", "server.properties, line 2"),
        (NoteKind.IGNORED, "num.io.threads", "server.properties, line 8"),
        (NoteKind.UNKNOWN, "num.partition", "server.properties, line 9"),
        (NoteKind.UNKNOWN, "x.y", "server.properties, line 10"),
    ]
    assert notes[0].why == "server.properties, line 11 counts"
    assert notes[2].why == "did you mean num.partitions?"


def test_lines_are_counted_as_an_editor_does() -> None:
    found = parse(b"# one\r\na=1\\\n  2\n\n!five\nb : 3\rc 4", "f").values
    assert {key: (given.value, given.place) for key, given in found.items()} == {
        "a": ("12", "f, line 2"),
        "b": ("3", "f, line 6"),
        "c": ("4", "f, line 7"),
    }


def test_a_broken_escape_names_its_line() -> None:
    with pytest.raises(SettingsError, match=r"f, line 2 or later: .*four hexadecimal digits"):
        parse(b"a=1\nb=\\u12\n", "f")
