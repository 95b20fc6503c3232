"""The console answers from the index: pages, records, exports, refusals, damage."""

import csv
import io
import json
from pathlib import Path

import pytest

from audit.console.console import Console
from audit.console.found import judged
from audit.console.log_source import FileSource
from audit.console.page_files import PAGE_FILES, POLICY
from audit.generated import write_history
from audit.places.replicas import one_replica
from audit.questions.search import Filter, search
from ledger.batch import Provenance
from metadata.records import UserScramCredentialRecord
from runtime.http.requests import Reply, Request
from tests.histories import HistoryBatch
from tests.unit.audit.nodes import write_node


def opened(folder: Path) -> Console:
    """A console that has read its log to the end."""
    source = FileSource(lambda: one_replica(str(folder / "node")))
    console = Console(source, folder / "cache", now=lambda: 0.0)
    console.keep_up(lambda: False)
    return console


def ask(console: Console, view: str, /, **query: str) -> tuple[int, dict]:
    reply = console.answer(Request("GET", f"/api/{view}", query=query))
    return reply.status, json.loads(reply.body)


@pytest.fixture(scope="module")
def console(tmp_path_factory) -> Console:
    folder = tmp_path_factory.mktemp("console")
    said = Provenance("User:ana", "token", "", "10.0.0.7", "cli", b"", b"", "Test", "because =1+1")
    write_node(folder / "node", 120, 5, checkpoint_every=200, provenance=said)
    return opened(folder)


def test_the_status_says_what_is_proved(console: Console) -> None:
    status, said = ask(console, "status")
    assert status == 200
    assert said["ready"]
    assert said["proof"]["state"] == "sound"
    assert said["proof"]["verifiedTo"] == said["logEnd"] > 100
    assert said["proof"]["head"] == said["head"]
    assert said["damage"] == ""


def test_pages_of_a_search_are_the_whole_of_it(console: Console, tmp_path) -> None:
    found, query = [], {"resource": "topic:*", "limit": "7"}
    while True:
        _, said = ask(console, "search", **query)
        found += [one["offset"] for one in said["items"]]
        if not said["next"]:
            break
        query["before"] = said["next"]
    replica = console._source.replica
    reader = replica.reader()
    wanted = Filter(resources=("topic:*",))
    expected = [one.logged.offset for one in search(replica, reader, wanted, 0, reader.log_end)]
    assert found == expected[::-1]
    assert said["total"] == len(expected)


SEARCHES = {
    "by address": ({"address": "10.0.*"}, True),
    "by another address": ({"address": "10.1.*"}, False),
    "by text in two places": ({"q": "ANA because"}, True),
    "by text that is nowhere": ({"q": "ana nowhere"}, False),
    "by text with a wildcard of SQL": ({"q": "%"}, False),
    "by principal": ({"principal": "ana"}, True),
    "by an outcome": ({"outcome": "settled"}, True),
    "by a type": ({"type": "topic"}, True),
    "in a range": ({"from": "5", "to": "6"}, True),
    "in an empty range": ({"from": "6", "to": "6"}, False),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search(console: Console, name: str) -> None:
    query, is_found = SEARCHES[name]
    status, said = ask(console, "search", **query)
    assert status == 200, said
    assert bool(said["items"]) == is_found


REFUSED = {
    "unknown parameter": ("search", {"colour": "red"}, "the parameter 'colour' is unknown"),
    "unknown table": ("state", {"table": "nonsense"}, "there is no table 'nonsense'"),
    "unknown type": ("search", {"type": "nonsense"}, "there is no record type"),
    "unknown outcome": ("search", {"outcome": "maybe"}, "there is no outcome"),
    "no moment": ("counts", {"at": "yesterday"}, "is not a moment"),
    "after the end": ("counts", {"at": "999999"}, "is not there yet"),
    "no number": ("search", {"limit": "x"}, "limit must be a number"),
    "too many rows": ("search", {"limit": "501"}, "limit must be a number from 0 to 500"),
    "no entry": ("thing", {"table": "topics", "name": "nobody"}, "never had an entry"),
    "no offset": ("record", {"offset": "999999"}, "is not in the log"),
    "a broken page": ("state", {"table": "topics", "after": "x"}, ""),
    "no export": ("export", {"view": "status"}, "can't be exported"),
    "a long text": ("search", {"q": "x" * 301}, "longer than 300"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_question_gets_one_sentence(console: Console, name: str) -> None:
    view, query, sentence = REFUSED[name]
    status, said = ask(console, view, **query)
    assert status == 400, said
    assert sentence in said["message"]


def test_only_reads_are_answered(console: Console) -> None:
    assert console.answer(Request("POST", "/api/status")).status == 405
    assert ask(console, "nonsense")[0] == 404
    assert console.answer(Request("GET", "/../secrets")).status == 404


def test_the_page_runs_only_its_own_script(console: Console) -> None:
    for path, (_, kind) in PAGE_FILES.items():
        reply = console.answer(Request("GET", path))
        assert reply.status == 200
        assert reply.headers["content-type"] == kind
        assert reply.headers["content-security-policy"] == POLICY
        body = reply.body.replace(b"http://www.w3.org/2000/svg", b"")
        for outside in (b"http://", b"https://", b"style=", b'onclick="', b"innerHTML"):
            assert outside not in body, (path, outside)


def test_a_record_and_a_thing_say_who_and_what(console: Console) -> None:
    _, said = ask(console, "search", type="topic", limit="1")
    offset = said["items"][0]["offset"]
    _, record = ask(console, "record", offset=str(offset))
    assert record["type"] == "TOPIC_RECORD"
    assert record["principal"] == "User:ana"
    _, thing = ask(console, "thing", table="topics", name=record["data"]["name"])
    assert thing["versions"][-1]["kind"] == "created"
    assert thing["versions"][-1]["cause"]["clientAddress"] == "10.0.0.7"


def test_the_intruder_comes_first(tmp_path) -> None:
    write_history(tmp_path / "history", records=20_000, replicas=1, seed=7)
    (tmp_path / "history" / "controller-1").rename(tmp_path / "node")
    console = opened(tmp_path)
    assert ask(console, "status")[1]["hasFindings"]
    _, said = ask(console, "findings")
    assert 0 < len(said["items"]) <= 50
    assert "User:connect" in said["items"][0]["principal"]
    assert said["upTo"] == ask(console, "status")[1]["logEnd"]


def rows(reply: Reply) -> list[dict]:
    if reply.headers["content-type"].startswith("text/csv"):
        return list(csv.DictReader(io.StringIO(reply.body.decode(), newline="")))
    return [json.loads(line) for line in reply.body.splitlines()]


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize(
    ("view", "query"),
    [
        ("search", {"resource": "topic:*"}),
        ("state", {"table": "partitions"}),
        ("diff", {"from": "10"}),
        ("thing", {"table": "brokers", "name": "1"}),
    ],
)
def test_an_export_has_what_is_shown(console: Console, view: str, query: dict, kind: str) -> None:
    reply = console.answer(
        Request("GET", "/api/export", query={"view": view, "format": kind, **query})
    )
    assert reply.status == 200, reply.body
    assert "attachment" in reply.headers["content-disposition"]
    found = rows(reply)
    assert len(found) == int(reply.headers["x-logberg-rows"]) > 0
    if view == "search":
        _, said = ask(console, view, **query, limit="500")
        assert [int(one["offset"]) for one in found] == [o["offset"] for o in said["items"]]


def test_a_formula_is_no_formula_in_a_spreadsheet(tmp_path) -> None:
    said = Provenance(principal="=cmd()", operation="@x", reason="+1")
    write_node(tmp_path / "node", 3, 1, provenance=said)
    console = opened(tmp_path)
    query = {"view": "search", "format": "csv"}
    found = rows(console.answer(Request("GET", "/api/export", query=query)))
    assert found[0]["principal"] == "'=cmd()"
    assert found[0]["operation"] == "'@x"
    assert found[0]["reason"] == "'+1"


def test_secrets_are_starred_everywhere(tmp_path) -> None:
    secret = UserScramCredentialRecord("ana", 1, b"the-salt", b"the-stored", b"the-server", 8192)
    changed = UserScramCredentialRecord("ana", 1, b"the-salt", b"another-one", b"the-server", 8192)
    history = [HistoryBatch(0, 1, 1_000, (secret,)), HistoryBatch(1, 1, 2_000, (changed,))]
    write_node(tmp_path / "node", written=history)
    console = opened(tmp_path)
    for view, query in {
        "state": {"table": "scram"},
        "thing": {"table": "scram", "name": "ana SCRAM-SHA-256"},
        "record": {"offset": "0"},
        "diff": {"from": "1"},
        "search": {"q": "storedkey"},
    }.items():
        status, said = ask(console, view, **query)
        assert status == 200, said
        assert "dGhl" not in json.dumps(said), view  # base64 of "the"
    assert ask(console, "diff", **{"from": "1"})[1]["items"][0]["fields"] == {
        "storedKey": ["***", "***"]
    }


def test_damage_is_named_and_what_comes_before_it_is_shown(tmp_path) -> None:
    write_node(tmp_path / "node", 80, 2)
    segments = sorted((tmp_path / "node" / "log").iterdir())
    data = bytearray(segments[1].read_bytes())
    data[len(data) // 2] ^= 1
    segments[1].write_bytes(data)
    console = opened(tmp_path)
    _, said = ask(console, "status")
    assert said["proof"]["state"] == "damaged"
    assert segments[1].name in said["proof"]["problems"][0]
    assert segments[1].name in said["damage"]
    assert ask(console, "counts")[0] == 200


def test_before_the_index_is_built_the_console_says_so(tmp_path) -> None:
    write_node(tmp_path / "node", 3, 1)
    source = FileSource(lambda: one_replica(str(tmp_path / "node")))
    console = Console(source, tmp_path / "cache", now=lambda: 0.0)
    assert ask(console, "status")[1]["ready"] is False
    assert ask(console, "counts") == (503, {"message": "The index is being built."})


@pytest.mark.parametrize("with_files", [True, False])
def test_a_cut_log_is_judged_from_its_checkpoint_or_not_at_all(
    tmp_path: Path, *, with_files: bool
) -> None:
    write_history(tmp_path, records=3_000, seed=3, segment_bytes=60_000, checkpoint_every=900)
    node = tmp_path / "controller-1"
    for path in sorted((node / "log").glob("*.log"))[:3]:
        path.unlink()
    replica = one_replica(str(node))
    said = judged(replica, replica.reader(), with_files=with_files)
    assert said.is_ready
    assert bool(said.cannot) != with_files
    assert bool(said.items) == with_files
