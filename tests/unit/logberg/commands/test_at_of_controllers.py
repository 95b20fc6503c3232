"""`--at` of running controllers: they send their log, and the answer is that of its files.

The controllers are real cores on simulated disks, behind real sockets. What a controller sends is
altered on its way where a case needs a controller that lies, lags or is old.
"""

import base64
import json
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import pytest

from audit.reading.dump import utc
from controller.http import snapshot_ranges
from ledger.batch import parse
from logberg.client import remote_snapshots
from metadata.records import FeatureLevelRecord
from snapshots.checkpoint import (
    FOOTER_BYTES,
    CheckpointChecker,
    encode_footer,
    encode_header,
    parse_header,
)
from snapshots.store import list_checkpoints
from tests.unit.audit.nodes import rewritten
from tests.unit.controller.cluster import DECLARED, Cluster
from tests.unit.controller.storage.states_on_disk import SMALL, checkpoint
from tests.unit.logberg.commands.test_at import COMMANDS
from tests.unit.logberg.edge import Said, run_whole
from tests.unit.logberg.listener import Listener

Answer = tuple[str, bytes]
Alter = Callable[[str, Any], Any]
"""Changes the JSON that answers a request; gets its path and query."""
NO_PATH = ("404 Not Found", b'{"code":"NOT_FOUND","message":"there is no path"}')
ENTRY = {"resourceType": "TOPIC", "resourceName": "t", "operation": "READ", "principal": "User:a"}
CHANGES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("POST", "/v1/topics", {"topics": [{"name": "t", "replicationFactor": 3}]}),
    ("PATCH", "/v1/configs/topic/t", {"configs": [{"name": "retention.ms", "value": "5"}]}),
    ("POST", "/v1/acls", {"acls": [ENTRY]}),
    ("POST", "/v1/topics", {"topics": [{"name": "u", "numPartitions": 2, "replicationFactor": 1}]}),
    ("DELETE", "/v1/topics/t", None),
]


def serve(cluster: Any, node: int, asked: list[str] | None = None) -> Listener:
    """Let a controller's core answer over a real socket."""
    listener = Listener()

    def answer(method: str, target: str) -> Answer:
        parts = urlsplit(target)
        if asked is not None:
            asked.append(target)
        lines = listener.head.decode("latin-1").split("\r\n")[1:]
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines) if v}
        replies = cluster.send(
            method,
            unquote(parts.path),
            query=dict(parse_qsl(parts.query)),
            headers=headers,
            node=node,
        )
        cluster.run_until(lambda: bool(replies))
        return f"{replies[0].status} Said", replies[0].body

    listener.answer = answer
    return listener


class History:
    """A cluster with a past, its files, and the offsets after each change."""

    def __init__(self, folder: Path) -> None:
        cluster = self.cluster = Cluster(nodes=1, **SMALL)
        cluster.online(1, 2, 3, features=DECLARED)
        cluster.write(FeatureLevelRecord("metadata.version", 33))
        self.offsets = [cluster.image.offset]
        for number, (method, path, body) in enumerate(CHANGES):
            if number in (2, 4):
                checkpoint(cluster, 1)
            cluster.run(0.5)
            assert cluster.ask(method, path, body)[0] == 200
            self.offsets.append(cluster.image.offset)
        cluster.run(30.0)
        self.offsets.append(cluster.image.offset)
        self.snapshots = [each.offset for each in list_checkpoints(cluster.shared.disks[1])]
        self.times = {
            batch.header.end_offset: batch.header.timestamp_ms for batch in cluster.batches()
        }
        self.folder = folder
        for name, inode in cluster.platters[1].names.items():
            if name.startswith(("log/", "checkpoints/")):
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(bytes(inode.content))


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return History(tmp_path_factory.mktemp("history"))


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def server(history: History, asked: list[str]) -> Iterator[Listener]:
    listener = serve(history.cluster, 1, asked)
    yield listener
    listener.close()


def at(server: Listener, moment: object, *command: str) -> Said:
    return run_whole(*command, "--at", str(moment), "--controllers", server.url)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_controllers_log_says_what_the_same_log_on_disk_says(
    history: History, server: Listener, command: str
) -> None:
    words = [*command.split(), *COMMANDS[command], "-o", "json"]
    for offset in history.offsets:
        of_disk = run_whole(*words, "--at", str(offset), "--log", str(history.folder))
        assert json.loads(of_disk.out)["offset"] == offset
        assert at(server, offset, *words) == of_disk


EXPLAINED = [
    # The command, the place of the moment, what it says first, which operations it names.
    ("partition u-0", 4, "partition u-0: nothing is wrong with it", ["CreateTopics"]),
    ("partition u-0", -1, "partition u-0: it has no leader", ["FenceBroker", "CreateTopics"]),
    ("broker 1", 4, "broker 1: it is online", ["RegisterBroker", "UnfenceBroker"]),
    ("broker 1", -1, "broker 1: it is fenced", ["FenceBroker", "UnfenceBroker", "RegisterBroker"]),
]


@pytest.mark.parametrize(("thing", "moment", "first", "operations"), EXPLAINED)
def test_the_past_is_explained(
    history: History,
    server: Listener,
    thing: str,
    moment: int,
    first: str,
    operations: list[str],
) -> None:
    words, offset = ("explain", *thing.split()), history.offsets[moment]
    said = at(server, offset, *words)
    assert said == run_whole(*words, "--at", str(offset), "--log", str(history.folder))
    assert said.code == 0, said
    assert said.out.startswith(first), said.out
    for operation in operations:
        assert f"{operation} by " in said.out
    asof = json.loads(at(server, offset, *words, "-o", "json").out)
    assert {change["operation"] for change in asof["changes"]} >= set(operations)
    assert all(change["offset"] < offset for change in asof["changes"])
    fenced = first.endswith("fenced")
    assert ("heartbeats are not in the log" in said.out) == fenced


def test_an_explanation_ends_where_the_history_begins(history: History, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(history.folder, copy)
    first, second, *_ = sorted((copy / "log").iterdir())
    first.unlink()
    moment = ("--at", str(history.offsets[-1]), "--log", str(copy), "-o", "json")
    for thing in ("broker 1", "partition u-0"):
        said = run_whole("explain", *thing.split(), *moment)
        assert said.code == 0, said
        asof = json.loads(said.out)
        assert [change["operation"] for change in asof["changes"]] == ["FenceBroker"]
        assert asof["searchedDownTo"] == int(second.stem)


def test_settings_that_are_in_no_log_come_from_a_file(
    history: History, server: Listener, tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=7\nlog.retention.ms=11\nmin.insync.replicas=2\n")
    words, offset = ("configs", "describe", "topic", "u"), history.offsets[-1]
    without = at(server, offset, *words)
    assert "Kafka's defaults only" in without.out
    assert "own settings of that time are not in the log" in without.err
    every = at(server, offset, *words, "--all", "-o", "json")
    sources = {each["source"] for each in json.loads(every.out)["configs"]}
    assert "DEFAULT_CONFIG (Kafka's; a controller's own settings are not in the log)" in sources
    known = at(server, offset, *words, "--server-properties", str(file))
    assert known.err == ""
    rows = [row.split() for row in known.out.splitlines()[1:]]
    assert ["retention.ms", "11", "STATIC_BROKER_CONFIG"] in rows
    assert ["min.insync.replicas", "2", "STATIC_BROKER_CONFIG"] in rows
    file.write_text("a=\\uZZZZ\n")
    bad = at(server, offset, *words, "--server-properties", str(file))
    assert bad.code == 1
    assert "server.properties, line 1" in bad.err


@pytest.mark.parametrize("late_ms", [0, 1, 400])
def test_a_time_is_found_in_the_controllers_log(
    history: History, server: Listener, late_ms: int
) -> None:
    words = ("topics", "list", "-o", "json")
    for offset in history.offsets[:-1]:
        moment = utc(history.times[offset] + late_ms)
        said = at(server, moment, *words)
        assert said == run_whole(*words, "--at", moment, "--log", str(history.folder))
        assert json.loads(said.out)["offset"] == offset
    back = f"-{(history.times[history.offsets[-1]] - history.times[history.offsets[2]]) // 1000}s"
    said = at(server, back, *words)
    assert said == run_whole(*words, "--at", back, "--log", str(history.folder))
    assert history.offsets[0] < json.loads(said.out)["offset"] < history.offsets[-1]


def test_replay_begins_at_the_newest_snapshot_before_the_moment(
    history: History, server: Listener, asked: list[str]
) -> None:
    older, newer = history.snapshots
    assert history.offsets[1] < older == history.offsets[2] < history.offsets[3] < newer
    for moment, begins in (
        (history.offsets[-1], newer),
        (newer, newer),
        (history.offsets[3], older),
        (history.offsets[1], 0),
    ):
        asked.clear()
        assert at(server, moment, "topics", "list").code == 0
        pieces = [parse_qsl(urlsplit(target).query) for target in asked if "/v1/log?" in target]
        long = [dict(piece)["offset"] for piece in pieces if ("maxBytes", "0") not in piece]
        assert long == ([str(begins)] if begins < moment else []), asked
        loaded = [target for target in asked if "/v1/snapshots/" in target]
        assert len(loaded) == (1 if begins else 0)


def test_snapshots_are_fetched_in_pieces_and_their_list_in_pages(
    history: History, server: Listener, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_snapshots, "_PIECE_BYTES", 700)
    monkeypatch.setattr(snapshot_ranges, "SNAPSHOTS_LISTED_MAX", 1)
    whole = at(server, history.offsets[-1], "topics", "list")
    assert whole == run_whole(
        "topics", "list", "--at", str(history.offsets[-1]), "--log", str(history.folder)
    )
    assert len([target for target in asked if "/v1/snapshots/" in target]) > 2
    pages = [target for target in asked if target.startswith("/v1/snapshots")]
    assert f"/v1/snapshots?upTo={history.snapshots[1] - 1}" in pages


def altered(server: Listener, alter: Alter) -> None:
    """Change what a controller sends."""
    inner = server.answer
    assert inner is not None

    def answer(method: str, target: str) -> Answer | None:
        answered = inner(method, target)
        assert answered is not None
        status, body = answered
        if not body.startswith(b"{"):
            return answered
        changed = alter(target, json.loads(body))
        return changed if isinstance(changed, tuple) else (status, json.dumps(changed).encode())

    server.answer = answer


def no_list(target: str, said: Any) -> Any:
    return NO_PATH if target.startswith("/v1/snapshots") else said


def kept(_target: str, said: Any) -> Any:
    return said


def no_log(target: str, said: Any) -> Any:
    return NO_PATH if target.startswith(("/v1/snapshots", "/v1/log")) else said


def flipped(_target: str, said: Any) -> Any:
    if len(said.get("batches", ())) > 2:
        batch = bytearray(base64.b64decode(said["batches"][2]))
        batch[len(batch) // 2] ^= 1
        said["batches"][2] = base64.b64encode(batch).decode()
    return said


def one_left_out(_target: str, said: Any) -> Any:
    if len(said.get("batches", ())) > 2:
        del said["batches"][2]
    return said


def another_history(_target: str, said: Any) -> Any:
    """A batch with a right checksum that is not the one of this history."""
    if len(said.get("batches", ())) > 2:
        batch = rewritten(parse(base64.b64decode(said["batches"][0])))
        said["batches"][0] = base64.b64encode(batch).decode()
    return said


def first_left_out(target: str, said: Any) -> Any:
    """The snapshot is right, and the batch behind it is missing."""
    if "maxBytes=1" in target:
        del said["batches"][0]
    return said


def of_another_cluster(_target: str, said: Any) -> Any:
    return {**said, "clusterId": "another"} if "clusterId" in said else said


def nothing(target: str, said: Any) -> Any:
    return {**said, "batches": []} if "maxBytes=1" in target else said


def begins_later(target: str, said: Any) -> Any:
    if target.startswith("/v1/snapshots"):
        return {"snapshots": [], "more": False}
    return {**said, "logStart": 20} if "logStart" in said else said


@pytest.mark.parametrize(
    ("alter", "moment", "code", "says"),
    [
        (None, "999999", 1, "offset 999999 is not there yet: the log ends at"),
        (None, "2999-01-01", 1, "2999-01-01 is in the future"),
        (None, "soon", 1, "is not a moment"),
        (None, "1969-01-01", 1, "is before offset 0"),
        (no_list, "LAST", 0, "read from its beginning"),
        (no_log, "LAST", 1, "there is no path"),
        (flipped, "LAST", 1, "sent a damaged batch"),
        (one_left_out, "LAST", 1, "is not one history: offset"),
        (another_history, "LAST", 1, "is not one history: the previous hash"),
        (first_left_out, "LAST", 1, "is not one history: offset"),
        (of_another_cluster, "LAST", 1, "is not one history: the previous hash"),
        (nothing, "LAST", 1, "sent no batch at offset"),
        (begins_later, "19", 1, "offset 19 is before 20, where the history here begins"),
        (begins_later, "1970-01-01", 1, "is before offset 20, where the history here begins"),
        (begins_later, "LAST", 1, "history begins at offset 20, and there is no snapshot"),
    ],
)
def test_what_controllers_can_not_answer(
    history: History, server: Listener, alter: Alter | None, moment: str, code: int, says: str
) -> None:
    if alter is not None:
        whole = alter is not first_left_out
        altered(
            server, lambda target, said: (no_list if whole else kept)(target, alter(target, said))
        )
    said = at(server, moment.replace("LAST", str(history.offsets[-1])), "topics", "list")
    assert (said.code, says in said.both) == (code, True), said


@pytest.mark.parametrize("place", ["in its bytes", "of another history"])
def test_a_snapshot_that_is_wrong_is_not_used(
    history: History, server: Listener, place: str
) -> None:
    newest = history.snapshots[1]
    inner = server.answer
    assert inner is not None

    def answer(method: str, target: str) -> Answer | None:
        answered = inner(method, target)
        if answered is None or f"/v1/snapshots/{newest:020d}" not in target:
            return answered
        body = bytearray(answered[1])
        if place == "in its bytes":
            body[-60] ^= 1
            return answered[0], bytes(body)
        (folder,) = (history.folder,)
        other = next((folder / "checkpoints").glob(f"{newest:020d}*")).read_bytes()
        assert bytes(body) == other
        return answered[0], with_another_chain_hash(other)

    server.answer = answer
    moment = history.offsets[-1]
    said = at(server, moment, "topics", "list")
    of_disk = run_whole("topics", "list", "--at", str(moment), "--log", str(history.folder))
    assert (said.code, said.out) == (0, of_disk.out)
    assert f"{newest:020d}" in said.err
    assert "is not used" in said.err


def with_another_chain_hash(data: bytes) -> bytes:
    """A checkpoint with right checksums, and another history."""
    header, length = parse_header(data)
    frames = [encode_header(msgspec.structs.replace(header, chain_hash=bytes(32)))]
    frames.append(data[length:-FOOTER_BYTES])
    checker = CheckpointChecker()
    checker.feed(data)
    assert checker.footer is not None
    digest = sha256(b"".join(frames)).digest()
    return b"".join([*frames, encode_footer(checker.footer._replace(digest=digest))])


@pytest.mark.parametrize("trouble", ["it lags", "it breaks", "it is gone"])
def test_any_controller_sends_the_log(
    history: History, server: Listener, asked: list[str], trouble: str
) -> None:
    other = serve(history.cluster, 1)

    def troubled(target: str, said: Any) -> Any:
        if trouble == "it lags":
            return said | {name: 5 for name in ("logEnd", "highWatermark") if name in said}
        if target.startswith("/v1/log"):
            return ("503 No", b'{"code":"STORAGE_ERROR","message":"a broken disk"}')
        return {**said, "active": False} if "active" in said else said

    altered(other, troubled)
    if trouble == "it is gone":
        other.close()
    urls = f"{other.url},{server.url}"
    words = ("topics", "list", "--at", str(history.offsets[-1]), "-o", "json")
    said = run_whole(*words, "--controllers", urls)
    if trouble != "it is gone":
        other.close()
    assert said.code == 0, said
    assert json.loads(said.out)["offset"] == history.offsets[-1]
    assert asked


def test_nobody_answers() -> None:
    gone = Listener()
    gone.close()
    said = run_whole("topics", "list", "--at", "5", "--controllers", gone.url)
    assert said.code == 1
    assert f"{gone.url} does not answer" in said.err


def test_a_ca_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    named = ("--controllers", "https://127.0.0.1:1", "--ca", str(tmp_path / "none.pem"))
    present = run_whole("topics", "list", *named)
    assert "check --ca, --cert and --key" in present.err
    assert run_whole("topics", "list", "--at", "5", *named) == present


def test_where_the_log_is_read(history: History, server: Listener, tmp_path: Path) -> None:
    """`--log` first, then `--controllers`, then the folder of `--data`."""
    listed = ("topics", "list", "--at", str(history.offsets[1]), "-o", "json")
    said = run_whole(*listed, env={"LOGBERG_CONTROLLERS": server.url})
    heard = len(server.heard)
    assert said.code == 0, said
    assert heard
    for more in (("--log", str(history.folder)), ("--data", str(history.folder))):
        assert run_whole(*listed, *more, env={"LOGBERG_CONTROLLERS": server.url}) == said
    assert len(server.heard) == heard
    nowhere = run_whole(*listed[:4], "--data", str(tmp_path / "none"))
    assert nowhere.code == 1
    assert "--controllers" in nowhere.err
    for option in (("--log", "x"), ("--server-properties", __file__)):
        bad = run_whole("topics", "list", "--controllers", server.url, *option)
        assert bad.code == 2
        assert "is only for --at" in bad.err
