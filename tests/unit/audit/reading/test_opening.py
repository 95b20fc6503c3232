"""Sealed addresses are opened while people look at them. Who can't open them judges none."""

from pathlib import Path

import msgspec
import pytest

from audit.console.console import Console
from audit.console.log_source import FileSource
from audit.findings.events import AuditEvent, EventCaller
from audit.findings.log_findings import of_log
from audit.findings.rule_files import builtin_rules, read_rules
from audit.findings.watcher import Watcher
from audit.places.replicas import one_replica
from audit.reading.feed import Question
from audit.reading.opening import OpenedHeads, opened_header, opened_words
from ledger.batch import BatchHeader, Provenance
from logberg.commands.audit.opening_option import KeysInUse, not_judged, opener_of
from metadata.person_opener import NO_OPENER, PersonOpener
from metadata.sealed_addresses import address_place
from metadata.sealed_blocks import SealingError
from metadata.sealed_places import tree_place
from metadata.sealed_texts import text_of_block
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys
from runtime.http.requests import Request
from tests.unit.audit.console.test_console import ask
from tests.unit.audit.nodes import write_node
from tests.unit.logberg.edge import run_whole

DAY_MS = 86_400_000
TREE = SubjectKeys.of_root(bytes(range(32)))
KEY = ClusterKey(bytes(32))
KEY.subjects.keys = TREE
NUMBER = KEY.number_of("user:alice")
ADDRESS = "172.16.13.77"


def sealed(day: int = 0, address: str = ADDRESS) -> str:
    place = address_place("User:alice")
    return text_of_block(KEY.seal_for(NUMBER, place, address.encode(), b"day %d" % day).block)


def event(day: float, address: str, kind: str = "acl_added") -> AuditEvent:
    offset, caller = int(day * 100), EventCaller("User:alice", "", "token", address)
    return AuditEvent(offset, offset, int(day * DAY_MS), kind, f"acl:{offset}", caller, "User:new")


def rules_of(findings) -> set[str]:
    return {one.rule for one in findings}


def test_a_sealed_address_is_never_a_new_network() -> None:
    """Each day has another text for the same address."""
    clear, hidden = Watcher(builtin_rules()), Watcher(builtin_rules())
    for watcher, of_day in ((clear, lambda day: f"10.{day}.0.1"), (hidden, sealed)):
        watcher.step([event(day, of_day(day), "activity") for day in range(3)])
    assert "stolen_identity" in rules_of(clear.step([event(3, "172.16.0.1")]))
    assert "stolen_identity" not in rules_of(hidden.step([event(3, sealed(3))]))


def test_a_rule_about_addresses_does_not_judge_a_sealed_one() -> None:
    rules = """
    [outside]
    severity = "high"
    kinds = ["acl_added"]
    address = ["[!1]*"]
    gather = "1s"
    sentence = "{actor} from {address}"
    """
    watcher = Watcher(read_rules(rules, "own.toml"))
    assert "outside" not in rules_of(watcher.step([event(1, sealed())], 2 * DAY_MS))
    assert "outside" in rules_of(watcher.step([event(3, "9.9.9.9")], 4 * DAY_MS))


def test_findings_are_told_apart_by_the_number_of_a_sealed_address() -> None:
    rules = """
    [each]
    severity = "low"
    kinds = ["acl_added"]
    per = ["address"]
    gather = "9d"
    sentence = "from {addresses}"
    """
    watcher = Watcher(read_rules(rules, "own.toml"))
    found = watcher.step([event(1, sealed(1)), event(2, sealed(2))], 20 * DAY_MS)
    found = [one for one in found if one.rule == "each"]
    assert len({one.id for one in found}) == 1
    assert found[-1].sentence == f"from a sealed address of {NUMBER.hex()}"


def test_words_are_opened_wherever_an_address_stands() -> None:
    words = {
        "items": [
            {"principal": "User:alice", "clientAddress": sealed()},
            {"principal": "Broker:1", "onBehalfOf": "User:alice", "clientAddress": sealed(1)},
            {"principal": "User:bob", "clientAddress": sealed()},
            {"data": {"principal": "User:alice", "address": sealed(), "count": 3}},
        ],
        "n": 1,
    }
    opened = opened_words(PersonOpener(KEY), words)
    first, second, other, attempt = opened["items"]
    assert (first["clientAddress"], second["clientAddress"]) == (ADDRESS, ADDRESS)
    assert other["clientAddress"] == sealed()
    assert attempt["data"] == {"principal": "User:alice", "address": ADDRESS, "count": 3}
    assert opened_words(NO_OPENER, words) == words


def test_a_header_keeps_all_but_the_address() -> None:
    said = Provenance("User:alice", "token", "", sealed(), operation="Test")
    header = BatchHeader(7, 1, 1, 5, said, bytes(32))
    opened = opened_header(PersonOpener(KEY), header)
    assert opened.provenance.client_address == ADDRESS
    assert msgspec.structs.replace(opened, provenance=said) == header
    assert opened_header(NO_OPENER, header) is header


def node(folder: Path) -> Path:
    """Write a controller's folder with keys, whose batches alice asked for."""
    said = Provenance("User:alice", "token", "", sealed(), "cli", b"", b"", "Test", "why")
    write_node(folder / "node", 30, 5, provenance=said)
    write_tree(folder / "node", TREE)
    (folder / "cluster.key").write_text(bytes(32).hex())
    (folder / "cluster.key").chmod(0o600)
    return folder / "node"


def write_tree(place: Path, tree: SubjectKeys) -> None:
    (place / "keys").mkdir(exist_ok=True)
    name = tree.id.hex()
    (place / "keys" / name).write_bytes(KEY.seal(tree_place(name), tree.encode(), bytes(16)).block)


@pytest.mark.parametrize(
    "command",
    [
        ("log", "--limit", "3"),
        ("who", "topic:*"),
        ("log", "--limit", "3", "--output", "json"),
        ("history", "quorum"),
        ("history", "quorum", "--output", "json"),
        ("follow", "--from", "0", "--until-offset", "3"),
        ("follow", "--from", "0", "--until-offset", "3", "--output", "json"),
    ],
)
def test_commands_show_addresses_with_the_key_only(tmp_path: Path, command) -> None:
    place = node(tmp_path)
    name, *others = command
    plain = run_whole("audit", name, str(place), *others)
    assert (plain.code, ADDRESS in plain.out) == (0, False), plain
    key = ("--cluster-key", str(tmp_path / "cluster.key"))
    shown = run_whole("audit", name, str(place), *others, *key)
    assert (shown.code, ADDRESS in shown.out) == (0, True), shown
    write_tree(place, TREE.without([NUMBER]))
    erased = run_whole("audit", name, str(place), *others, *key)
    assert (erased.code, ADDRESS in erased.out) == (0, False), erased


def test_findings_say_that_sealed_addresses_are_not_judged(tmp_path: Path) -> None:
    place = node(tmp_path)
    said = run_whole("audit", "findings", str(place))
    assert "rules did not judge from where they came" in said.err
    key = ("--cluster-key", str(tmp_path / "cluster.key"))
    assert "rules did not judge" not in run_whole("audit", "findings", str(place), *key).err
    replica = one_replica(str(place))
    heads = OpenedHeads(opener_of(tmp_path / "cluster.key", replica))
    of_log(Question([replica]), None, heads)
    assert heads.left_sealed == 0
    assert not_judged(0) == []


def test_a_report_says_that_sealed_addresses_are_not_judged(tmp_path: Path) -> None:
    place = node(tmp_path)
    said = run_whole("audit", "report", str(place), "--out", str(tmp_path / "out"))
    assert said.code == 0, said
    page = (tmp_path / "out" / "audit-report.html").read_text()
    assert "no rule judged from where those changes came" in page
    assert f"from a sealed address of {NUMBER.hex()}" in page
    assert ADDRESS not in page


@pytest.mark.parametrize(
    "command", [("log",), ("who", "quorum"), ("history", "quorum"), ("follow",), ("findings",)]
)
def test_a_wrong_key_is_refused(tmp_path: Path, command: tuple[str, ...]) -> None:
    place, key = node(tmp_path), tmp_path / "cluster.key"
    key.write_text(bytes(range(32)).hex())
    name, *others = command
    said = run_whole("audit", name, str(place), *others, "--cluster-key", str(key))
    assert said.code == 1
    assert "no keys of subjects that this key opens" in said.err


def test_the_console_opens_what_it_shows_and_exports_nothing_in_clear(tmp_path: Path) -> None:
    place = node(tmp_path)
    source = FileSource(lambda: one_replica(str(place)))
    opener = PersonOpener(KEY)
    console = Console(source, tmp_path / "cache", now=lambda: 0.0, opener=lambda: opener)
    console.keep_up(lambda: False)
    _, found = ask(console, "search", limit="5")
    assert {one["clientAddress"] for one in found["items"]} == {ADDRESS}
    _, one = ask(console, "record", offset=str(found["items"][0]["offset"]))
    assert one["clientAddress"] == ADDRESS
    content = b"".join(f.read_bytes() for f in (tmp_path / "cache").rglob("*") if f.is_file())
    assert ADDRESS.encode() not in content
    export = Request("GET", "/api/export", query={"view": "search", "format": "csv"})
    assert ADDRESS.encode() not in console.answer(export).body


def test_keys_are_read_again_so_that_an_erasure_reaches_a_console() -> None:
    now, tree = [0.0], [TREE]

    def load() -> ClusterKey:
        if tree[0] is None:
            raise SealingError("no tree")
        key = KEY.copy()
        key.subjects.keys = tree[0]
        return key

    keys = KeysInUse(load, lambda: now[0])
    assert keys.opener().opened("User:alice", sealed()) == ADDRESS
    tree[0] = TREE.without([NUMBER])
    now[0] = 1.1
    assert keys.opener().opened("User:alice", sealed()) == sealed()
    tree[0], now[0] = None, 3.0
    assert keys.opener() is NO_OPENER
