"""`logberg backup`: from running controllers and from folders, into folders and object storage."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from audit.generated.writing import write_history
from audit.places.replicas import one_replica
from logberg.backups import folders
from logberg.backups.backup_format import BackupEncoder, BackupHeader, FileBegins
from logberg.backups.places import BackupName, open_backup
from logberg.backups.reading import verified_parts, verify_backup
from tests.object_store import ObjectStore, object_store
from tests.unit.controller.cluster import CLUSTER_ID, DECLARED, Cluster
from tests.unit.controller.storage.states_on_disk import SMALL, checkpoint
from tests.unit.logberg.commands.test_at_of_controllers import serve
from tests.unit.logberg.edge import Said, run_whole
from tests.unit.logberg.listener import Listener


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A node's folder."""
    folder = tmp_path_factory.mktemp("history")
    write_history(folder, records=2_500, checkpoint_every=1_000)
    return folder / "controller-1"


def create(node: Path, where: object, *more: str) -> Said:
    return run_whole("backup", "create", "--from-folder", str(node), "--to", str(where), *more)


def made(said: Said) -> dict:
    assert said.code == 0, said.err
    return json.loads(said.out)


def config(
    folder: Path, cluster_id: str, numbers: tuple[int, ...] = (1, 2, 3), own: int = 1
) -> Path:
    """A controller's file."""
    path = folder / f"controller-{own}.toml"
    peers = "".join(
        f'[[controllers]]\nnode_id = {n}\nquorum = "127.0.0.1:{9000 + n}"\n'
        f'http = "http://127.0.0.1:{9100 + n}"\n'
        for n in numbers
    )
    path.write_text(f'cluster_id = "{cluster_id}"\nnode_id = {own}\ndata = "data-{own}"\n{peers}')
    return path


def test_a_backup_is_made_listed_verified_drilled_and_restored(node: Path, tmp_path: Path) -> None:
    where = tmp_path / "backups"
    answer = made(create(node, where, "--output", "json"))
    assert answer["made"]
    name, cluster_id = answer["backup"]["name"], answer["backup"]["clusterId"]
    file = str(where / name)
    listed = json.loads(run_whole("backup", "list", str(where), "--output", "json").out)
    assert [each["name"] for each in listed] == [name]
    assert name in run_whole("backup", "list", str(where)).out
    assert "sound" in run_whole("backup", "verify", file).out
    drilled = run_whole("backup", "drill", file, "--output", "json")
    assert drilled.code == 0, drilled.err
    assert json.loads(drilled.out)["ok"]
    assert len(json.loads(drilled.out)["stateHash"]) == 128
    into = tmp_path / "new"
    settings = config(tmp_path, cluster_id)
    done = run_whole(
        *("backup", "restore", file, "--config", str(settings), "--into", str(into)),
        *("--reason", "the disks burnt"),
    )
    assert done.code == 0, done.err
    assert sorted(path.name for path in into.iterdir()) == [f"controller-{n}" for n in (1, 2, 3)]
    batches = list(one_replica(str(into / "controller-3")).reader().batches())
    assert batches[-1].header.provenance.reason == "the disks burnt"
    assert batches[-1].header.provenance.principal.startswith("User:")


def test_nothing_is_restored_over_a_folder_that_is_not_empty(node: Path, tmp_path: Path) -> None:
    answer = made(create(node, tmp_path / "backups", "--output", "json"))["backup"]
    file, settings = tmp_path / "backups" / answer["name"], config(tmp_path, answer["clusterId"])
    into = tmp_path / "new"
    (into / "controller-2").mkdir(parents=True)
    (into / "controller-2" / "mine").write_text("precious")
    said = run_whole("backup", "restore", str(file), "--config", str(settings), "--into", str(into))
    assert said.code == 1
    assert "is not empty: nothing is restored over it" in said.err
    assert [path.name for path in into.rglob("*")] == ["controller-2", "mine"]
    (into / "controller-2" / "journal").mkdir()
    said = run_whole("backup", "restore", str(file), "--config", str(settings), "--into", str(into))
    assert "its node may run" in said.err
    assert not (into / "controller-1").exists()


def test_a_damaged_backup_changes_nothing(node: Path, tmp_path: Path) -> None:
    answer = made(create(node, tmp_path / "backups", "--output", "json"))["backup"]
    file, settings = tmp_path / "backups" / answer["name"], config(tmp_path, answer["clusterId"])
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    file.write_bytes(data)
    into = tmp_path / "new"
    for command in (
        ("restore", "--config", str(settings), "--into", str(into)),
        ("drill",),
        ("verify",),
    ):
        said = run_whole("backup", command[0], str(file), *command[1:])
        assert said.code == 1
        assert said.err.count("\n") == 1
        assert "Use another backup" in said.err
    assert not into.exists() or list(into.iterdir()) == []


def test_the_folders_of_the_files_are_restored_if_all_are_given(node: Path, tmp_path: Path) -> None:
    answer = made(create(node, tmp_path / "backups", "--output", "json"))["backup"]
    file = str(tmp_path / "backups" / answer["name"])
    files = [str(config(tmp_path, answer["clusterId"], own=n)) for n in (1, 2, 3)]
    said = run_whole("backup", "restore", file, "--config", files[0], "--config", files[2])
    assert said.code == 1
    assert "the cluster also has controller 2" in said.err
    configs = [part for each in files for part in ("--config", each)]
    done = run_whole("backup", "restore", file, *configs, "--at", "-1h", "--output", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["keptTo"] < answer["logEnd"]
    assert all((tmp_path / f"data-{n}" / "manifest").exists() for n in (1, 2, 3))
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".restoring")]


def test_a_restore_that_fails_at_its_end_leaves_no_folder(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One voter's folder that stayed would be in the way of the next try."""
    answer = made(create(node, tmp_path / "backups", "--output", "json"))["backup"]
    file, settings = tmp_path / "backups" / answer["name"], config(tmp_path, answer["clusterId"])
    move, into = folders._move, tmp_path / "new"

    def full(source: Path, target: Path) -> None:
        if target.name == "controller-2":
            raise OSError(28, "No space left on device")
        move(source, target)

    arguments = ("backup", "restore", str(file), "--config", str(settings), "--into", str(into))
    with monkeypatch.context() as patched:
        patched.setattr(folders, "_move", full)
        said = run_whole(*arguments)
    assert said.code == 1
    assert "No space left" in said.err
    assert list(into.iterdir()) == []
    assert run_whole(*arguments).code == 0


def test_a_restore_says_where_the_restored_log_begins(tmp_path: Path) -> None:
    """A backup of a part, with a checkpoint in it, holds no older history."""
    write_history(tmp_path, records=2_500, segment_bytes=50_000, checkpoint_every=1_000)
    where, node = tmp_path / "backups", tmp_path / "controller-1"
    answer = made(create(node, where, "--from", "1500", "--output", "json"))["backup"]
    assert answer["logStart"] > 0
    settings, into = config(tmp_path, answer["clusterId"]), tmp_path / "new"
    arguments = (str(where / answer["name"]), "--config", str(settings), "--into", str(into))
    said = run_whole("backup", "restore", *arguments)
    assert said.code == 0, said.err
    assert f"offsets {answer['logStart']} to {answer['logEnd']}" in said.out


def test_a_user_without_a_name_may_restore(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs under a number."""
    answer = made(create(node, tmp_path / "backups", "--output", "json"))["backup"]
    file, settings = tmp_path / "backups" / answer["name"], config(tmp_path, answer["clusterId"])
    monkeypatch.setattr("logberg.cli.login.os.getuid", lambda: 987_654)
    into = tmp_path / "new"
    said = run_whole("backup", "restore", str(file), "--config", str(settings), "--into", str(into))
    assert said.code == 0, said.err
    *_, last = one_replica(str(into / "controller-1")).reader().batches()
    assert last.header.provenance.principal == "User:uid-987654"


def test_wrong_files_and_places_are_named(node: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a backup, but long enough to look into")
    for arguments, words in (
        (("verify", str(tmp_path / "nothing")), "is no file"),
        (("verify", str(tmp_path / "notes.txt")), "no QRTA frame begins here"),
        (("list", str(tmp_path / "nothing")), "is not there"),
        (("list", str(tmp_path / "notes.txt")), "is not there"),
        (("create", "--from-folder", str(tmp_path), "--to", str(tmp_path)), "holds no log"),
        (("create", "--from-folder", str(node), "--to", "ftp://a/b"), "s3://BUCKET/PATH"),
    ):
        said = run_whole("backup", *arguments)
        assert said.code == 1
        assert words in said.err
        assert "Traceback" not in said.err


def test_another_clusters_place_is_refused(node: Path, tmp_path: Path) -> None:
    write_history(tmp_path / "other", records=500, cluster_id="another-cluster-000002")
    assert create(tmp_path / "other" / "controller-1", tmp_path / "b").code == 0
    said = create(node, tmp_path / "b")
    assert said.code == 1
    assert "name a place of its own" in said.err


def test_none_is_made_while_the_newest_is_young(node: Path, tmp_path: Path) -> None:
    first = made(create(node, tmp_path, "--if-older-than", "3600", "--output", "json"))
    again = made(create(node, tmp_path, "--if-older-than", "3600", "--output", "json"))
    assert (first["made"], again["made"]) == (True, False)
    assert first["backup"]["name"] == again["backup"]["name"]
    second = made(create(node, tmp_path, "--output", "json"))
    young = made(
        create(node, tmp_path, "--if-older-than", "3600", "--keep", "1", "--output", "json")
    )
    assert (young["made"], young["removed"]) == (False, [])
    third = made(create(node, tmp_path, "--keep", "1", "--output", "json"))
    assert third["removed"] == [first["backup"]["name"], second["backup"]["name"]]
    assert [path.name for path in tmp_path.iterdir()] == [third["backup"]["name"]]


# -- from running controllers ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    """Three controllers with a log and a checkpoint."""
    cluster = Cluster(nodes=3, **SMALL)
    cluster.online(1, 2, 3, features=DECLARED)
    for number in range(12):
        assert cluster.ask("POST", "/v1/topics", {"topics": [{"name": f"t{number}"}]})[0] == 200
        if number == 6:
            checkpoint(cluster, 1)
            checkpoint(cluster, 2)
    cluster.run(1.0)
    return cluster


@pytest.fixture
def listeners(cluster: Cluster) -> Iterator[dict[int, tuple[Listener, list[str]]]]:
    made: dict[int, tuple[Listener, list[str]]] = {}
    for node_id in (1, 2, 3):
        asked: list[str] = []
        made[node_id] = (serve(cluster, node_id, asked), asked)
    yield made
    for listener, _ in made.values():
        listener.close()


def urls(listeners: dict[int, tuple[Listener, list[str]]]) -> str:
    return ",".join(listener.url for listener, _ in listeners.values())


def test_a_standby_sends_its_log_and_the_leader_does_not(
    cluster: Cluster, listeners: dict[int, tuple[Listener, list[str]]], tmp_path: Path
) -> None:
    said = run_whole(
        *("backup", "create", "--controllers", urls(listeners), "--to", str(tmp_path)),
        *("--output", "json"),
    )
    answer = made(said)["backup"]
    assert answer["clusterId"] == CLUSTER_ID
    assert answer["logEnd"] == cluster.image.offset
    assert answer["checkpoint"]
    assert len(answer["voters"]) == 3
    assert [path for path in listeners[1][1] if "/v1/s" in path and "status" not in path] == []
    facts = verify_backup(open_backup(str(tmp_path / answer["name"])), lambda *_: None)
    assert facts.records == cluster.image.offset


def test_the_leader_sends_it_when_it_is_alone(
    cluster: Cluster, listeners: dict[int, tuple[Listener, list[str]]], tmp_path: Path
) -> None:
    leader = listeners[1][0].url
    said = run_whole("backup", "create", "--controllers", leader, "--to", str(tmp_path))
    assert said.code == 0, said.err
    assert leader in said.out


def test_the_log_may_grow_while_its_segments_are_listed(
    cluster: Cluster,
    listeners: dict[int, tuple[Listener, list[str]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("controller.http.segment_ranges.SEGMENTS_LISTED_MAX", 1)
    listener, asked = listeners[1]
    plain = listener.answer
    assert plain is not None

    def growing(method: str, target: str) -> tuple[str, bytes] | None:
        answered = plain(method, target)
        if target.startswith("/v1/segments?") or target == "/v1/segments":
            topics = {"topics": [{"name": f"grown-{len(asked)}"}]}
            assert cluster.ask("POST", "/v1/topics", topics)[0] == 200
            cluster.run(0.1)
        return answered

    listener.answer = growing
    said = run_whole(
        *("backup", "create", "--controllers", listener.url, "--to", str(tmp_path)),
        *("--output", "json"),
    )
    answer = made(said)["backup"]
    assert len([target for target in asked if "fromBase" in target]) > 1
    assert answer["logEnd"] < cluster.image.offset
    verify_backup(open_backup(str(tmp_path / answer["name"])), lambda *_: None)


def test_the_next_controller_is_asked_if_one_sends_damaged_bytes(
    cluster: Cluster, listeners: dict[int, tuple[Listener, list[str]]], tmp_path: Path
) -> None:
    for number in (2, 3):
        listener, _ = listeners[number]
        plain = listener.answer

        def bad(method: str, target: str, plain=plain):
            status, body = plain(method, target)
            if target.startswith("/v1/segments/") and status.startswith("206"):
                body = body[:-50] + bytes([body[-50] ^ 4]) + body[-49:]
            return status, body

        listener.answer = bad
    said = run_whole("backup", "create", "--controllers", urls(listeners), "--to", str(tmp_path))
    assert said.code == 0, said.err
    assert said.err.count("another controller is asked") == 2
    assert listeners[1][0].url in said.out


def forged(whole: Path, **other: Any) -> Path:
    """Write a backup with another header in place of a sound one."""
    encoder, out, renamed = BackupEncoder(), bytearray(), {}
    for part in verified_parts(open_backup(str(whole))):
        if isinstance(part, BackupHeader):
            header = replace(part, **other)
            renamed[f"checkpoints/{part.checkpoint}"] = f"checkpoints/{header.checkpoint}"
            out += encoder.header(header)
        elif isinstance(part, FileBegins):
            out += encoder.file(renamed.get(part.name, part.name), part.size)
        elif isinstance(part, bytes):
            out += encoder.piece(part)
    out += encoder.footer()[1]
    whole.unlink()
    file = whole.with_name(str(BackupName(5, 7)))
    file.write_bytes(out)
    return file


def test_a_forged_name_reaches_no_file_outside(node: Path, tmp_path: Path) -> None:
    answer = made(create(node, tmp_path / "backups", "--output", "json"))["backup"]
    file = forged(tmp_path / "backups" / answer["name"], checkpoint="../../../mine")
    settings = config(tmp_path, answer["clusterId"])
    for command in (
        ("verify",),
        ("drill",),
        ("restore", "--config", str(settings), "--into", str(tmp_path / "new")),
    ):
        said = run_whole("backup", command[0], str(file), *command[1:])
        assert (said.code, "is no name of a checkpoint" in said.err) == (1, True), said.err
    assert not list(tmp_path.rglob("mine"))


def test_what_a_header_says_never_controls_the_terminal(node: Path, tmp_path: Path) -> None:
    """The texts in a header come from others, too."""
    assert create(node, tmp_path).code == 0
    nasty = "\x1b]0;owned\x07\nforged line"
    forged_file = forged(next(tmp_path.iterdir()), made_at_ms=5, release=nasty, source=nasty)
    for command in (("list", str(tmp_path)), ("verify", str(forged_file))):
        for output in ("table", "json"):
            said = run_whole("backup", *command, "--output", output)
            assert said.code == 0, said.err
            assert "\x1b" not in said.out
            assert not [line for line in said.out.splitlines() if line.startswith("forged")]


# -- object storage -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store("backups") as running:
        yield running


def test_object_storage_keeps_backups_too(node: Path, store: ObjectStore, tmp_path: Path) -> None:
    where = f"s3://backups/of-mine{store.options}"
    names = [
        made(create(node, where, "--keep", "2", "--output", "json"))["backup"]["name"]
        for _ in range(3)
    ]
    assert store.names("backups/of-mine") == [f"backups/of-mine/{name}" for name in names[1:]]
    listed = json.loads(run_whole("backup", "list", where, "--output", "json").out)
    assert [each["name"] for each in listed] == names[1:]
    file = f"s3://backups/of-mine/{names[2]}{store.options}"
    assert run_whole("backup", "verify", file).code == 0
    drilled = run_whole("backup", "drill", file, "--at", "1000")
    assert drilled.code == 0, drilled.err
    assert "secret_key" not in drilled.both
    with store.no_rights():
        said = create(node, where)
        assert said.code == 1
        assert "secret_key" not in said.both
