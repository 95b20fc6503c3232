"""Text that others wrote never controls the terminal: every string field, every command.

The matrix is generated: string fields from the messages' and the records' own classes, commands
from the command tree. A command without a row in the tables below fails the first test.
"""

import functools
import io
import json
import re
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec
import pytest
from click.testing import CliRunner
from msgspec import inspect
from rich.console import Console
from rich.text import Text

from audit.tables import BY_NAME
from controller.http.routes import ROUTES
from ledger.batch import Provenance
from logberg import commands
from logberg.cli.command_tree import cli
from logberg.cli.output import drawn, print_json, print_line, shown, table
from metadata.messages.errors import ErrorReply
from metadata.messages.log import LogReply
from metadata.records import RECORD_CLASSES, FeatureLevelRecord, PseudonymRecord
from tests.histories import History
from tests.unit.audit.nodes import write_node
from tests.unit.logberg.edge import run_whole
from tests.unit.logberg.listener import Listener

FORGED = "forged line"
NASTY = {
    "esc": "\x1b]0;owned\x07\x1b[2J\x1b[31m",
    "c0": "\x00\x08\x0b\x0c\x7f",
    "c1": "\x9b31m\x90q\x9c",
    "bidi": "\u202eback\u2066\u2069\u061c\u200f",
    "newline": f"\n{FORGED}\r{FORGED}\r\n{FORGED}\u2028{FORGED}\u2029{FORGED}\x85{FORGED}",
    "markup": "[/x][bold red][link=https://evil.example]x[/]",
}
EVERYTHING = "".join(NASTY.values())
UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
LINE_FILE = str(Path(__file__).with_name("one_line.txt"))
"""Its line is a password as well as base64."""
_DRAWN = Path(tempfile.mkdtemp())
TOKEN_FILE, JOIN_FILE = str(_DRAWN / "token"), str(_DRAWN / "join")
"""The commands write them."""
NODES_FILE = str(Path(__file__).with_name("nodes.json"))
SKIP = ("--skip-malformed",)
DECLARED_FILE = str(Path(__file__).with_name("declared.yaml"))
SERVER: dict[str, list[list[str]]] = {
    "status": [[]],
    "whoami": [[]],
    "top": [["--once"]],
    "quorum status": [[]],
    "watch": [["topic:a", "--once"]],
    "brokers list": [[]],
    "brokers describe": [["1"]],
    "brokers unregister": [["1"], ["1", "--dry-run"]],
    "features list": [[]],
    "features upgrade": [["a=1"], ["a=1", "--dry-run"]],
    "features downgrade": [["a=1"], ["a=1", "--dry-run"]],
    "acls add": [["User:a", "read", "topic:a"], ["User:a", "read", "topic:a", "--dry-run"]],
    "acls remove": [["--all"], ["--all", "--dry-run"]],
    "acls list": [[]],
    "acls check": [["User:a", "read", "topic:a"]],
    "acls role grant": [["viewer", "User:a"], ["viewer", "User:a", "--dry-run"]],
    "acls role revoke": [["viewer", "User:a"], ["viewer", "User:a", "--dry-run"]],
    "acls role list": [[]],
    "partitions elect": [["a:0"], ["--all", "--unclean"], ["a:0", "--dry-run"]],
    "configs list": [[], ["--type", "topic"]],
    "configs describe": [["topic", "a"], ["topic", "a", "--all"]],
    "configs set": [["topic", "a", "b=c"], ["topic", "a", "b=c", "--dry-run"]],
    "configs delete": [["topic", "a", "b"], ["topic", "a", "b", "--dry-run"]],
    "configs append": [["topic", "a", "b=c"], ["topic", "a", "b=c", "--dry-run"]],
    "configs subtract": [["topic", "a", "b=c"], ["topic", "a", "b=c", "--dry-run"]],
    "quotas set": [
        ["producer_byte_rate=1", "--user", "a"],
        ["producer_byte_rate=1", "--user", "a", "--dry-run"],
    ],
    "quotas remove": [["producer_byte_rate", "--ip", "<default>"]],
    "quotas list": [[]],
    "quotas resolve": [["--user", "a"]],
    "users scram set": [
        ["a", "--password-file", LINE_FILE],
        ["a", "--password-file", LINE_FILE, "--dry-run"],
    ],
    "users scram delete": [["a"], ["a", "--dry-run"]],
    "users scram list": [[], ["a"]],
    "tokens create": [["User:a", TOKEN_FILE], ["User:a", TOKEN_FILE, "--dry-run"]],
    "tokens rotate": [["a", TOKEN_FILE]],
    "tokens revoke": [["a"]],
    "erase": [["user:a", "--yes", "--reason", "a"], ["user:a", "--dry-run"]],
    "pseudonyms list": [[], ["--name", "a"]],
    "tokens list": [[]],
    "join-token revoke": [["a"]],
    "join-token list": [[]],
    "certs revoke": [["--serial", "0A"]],
    "certs reinstate": [["--principal", "User:a"]],
    "certs revoked": [[]],
    "delegation-tokens create": [[], ["--dry-run"]],
    "delegation-tokens renew": [["a", "--hmac-file", LINE_FILE]],
    "delegation-tokens expire": [["a", "--hmac-file", LINE_FILE]],
    "delegation-tokens list": [[]],
    "quorum unregister-controller": [["7"], ["7", "--dry-run"]],
    "quorum add": [["7"], ["7", "--dry-run"]],
    "quorum remove": [["7"], ["7", "--dry-run"]],
    "quorum promote": [["7"], ["7", "--dry-run"]],
    "quorum move": [["7", "--to", "a:1"], ["7", "--to", "a:1", "--dry-run"]],
    "quorum replace": [["1", "--wait", "0"]],
    "quorum keys": [[]],
    "quorum rotate-key": [["7"], ["7", "--dry-run"]],
    "quorum transfer": [["1", "--wait", "0"], ["2", "--wait", "0"]],
    "log archive run": [[], ["--reason", "a"]],
    "topics create": [["a"], ["a", "--dry-run"]],
    "topics list": [[]],
    "topics describe": [["a"]],
    "topics delete": [["a"], ["a", "b"], ["a", "--dry-run"]],
    "partitions list": [[], ["--leaderless", "--topic", "a"]],
    "partitions describe": [["a-0"]],
    "partitions add": [["a", "2"], ["a", "2", "--replicas", "1,2", "--dry-run"]],
    "reassign start": [["a-0=1,2"], ["a-0=1,2", "--dry-run"]],
    "reassign cancel": [["a-0"], ["a-0", "--dry-run"], ["--all"]],
    "reassign list": [[]],
    "reassign plan": [["--off", "1"]],
    "apply": [["-f", DECLARED_FILE, "--yes"], ["-f", DECLARED_FILE, "--dry-run"]],
    "diff": [["-f", DECLARED_FILE, "--prune"]],
    "import zookeeper": [
        [NODES_FILE, *SKIP],
        [NODES_FILE, "--dry-run", *SKIP],
        [NODES_FILE, "--layout", "plain", "--into", "n", *SKIP],
    ],
    "export": [["--assignments"], ["--kind", "acls", "--kind", "configs"]],
    "brokers what-if": [["--lost", "1"], ["--rack", "b", "--all"]],
    "coordination sessions list": [[]],
    "coordination sessions describe": [["AAAAAAAAAAAAAAAAAAAAAA"]],
    "coordination sessions end": [
        ["AAAAAAAAAAAAAAAAAAAAAA"],
        ["AAAAAAAAAAAAAAAAAAAAAA", "--dry-run"],
    ],
    "coordination groups list": [[]],
    "coordination groups describe": [["a"]],
    "coordination elections list": [[]],
    "coordination elections describe": [["a"]],
    "coordination elections break": [["a"], ["a", "--dry-run"]],
    "coordination locks list": [[]],
    "coordination locks describe": [["a"]],
    "coordination locks break": [["a"], ["a", "--dry-run"]],
    "coordination keys get": [["a"]],
    "coordination keys list": [[], ["a", "--values"]],
    "coordination keys put": [["a", "b"], ["a", "b", "--dry-run"]],
    "coordination keys delete": [["a"], ["a", "--dry-run"]],
    "coordination keys watch": [["a", "--once"], ["a", "--prefix", "--once"]],
    "coordination limits": [[]],
    "explain partition": [["a-0"]],
    "explain broker": [["1"]],
    "explain lock": [["a"]],
    "explain election": [["a"]],
    "explain group": [["a"]],
    "explain session": [["AAAAAAAAAAAAAAAAAAAAAA"]],
    "explain key": [["a"]],
}
"""What asks controllers."""
PLAIN = (
    "acls role list",
    "brokers unregister",
    "quorum unregister-controller",
    "quorum add",
    "quorum promote",
    "quorum remove",
    "quorum move",
    "quorum transfer",
    "quorum rotate-key",
    "users scram delete",
    "tokens revoke",
    "join-token revoke",
    "coordination sessions end",
    "coordination elections break",
    "coordination locks break",
    "coordination keys put",
    "coordination keys delete",
    "coordination limits",
    "explain key",
)
"""What shows no text of the answer, if it went well."""
WHERE, OTHER = "<where>", "<other>"
FILES: dict[str, list[list[str]]] = {
    "log dump": [[WHERE], [WHERE, "--show-secrets"]],
    "log verify": [[WHERE]],
    "log archive state": [[WHERE]],
    "log archive verify": [[WHERE]],
    "log replay": [[WHERE]],
    "audit state": [[WHERE], [WHERE, "--show", "all"]],
    "audit log": [[WHERE]],
    "audit who": [[WHERE, thing] for thing in ("topic:*", "user:*", "config:*", "broker:*")],
    "audit history": [[WHERE, thing] for thing in ("broker:1", "quorum", "controller:1")],
    "audit holders": [[WHERE]],
    "audit diff": [[WHERE, "0", "end"]],
    "audit findings": [[WHERE], [WHERE, "--follow", "--from", "0", "--until-offset", "<end>"]],
    "audit availability": [[WHERE, "--by", by] for by in ("broker", "topic", "partition")],
    "audit size": [[WHERE]],
    "audit keys": [[WHERE], [WHERE, "--lines"]],
    "audit verify": [[WHERE], [WHERE, "--keep-going"]],
    "audit compare": [[WHERE, OTHER]],
    "audit follow": [[WHERE, "--from", "0", "--until-offset", "<end>"]],
    "audit run": [[job, WHERE] for job in BY_NAME],
}
"""What reads files."""
NEITHER = {
    "demo": "its words are its own, through `say`",
    "up": "the tables of `status`, and `say`",
    "kafka up": "the same",
    "kafka tool": "Kafka's own programs print, in their own process",
    "kafka metadata-log": "addresses and ids of the cluster's own controllers, through `show`",
    "controller": "a service: structured log",
    "broker": "a service: structured log",
    "witness": "a service: structured log",
    "cluster-id": "draws an id",
    "cluster-key": "draws a key; it names a file that the caller gave",
    "completion": "click's own script",
    "doctor": "it reads /metrics too; tests/unit/logberg/commands/test_doctor.py forges it",
    "support-bundle": "names of its own files; tests/process/test_operating.py reads them",
    **dict.fromkeys(
        ("certs create", "certs renew", "certs expiry"),
        "files that the caller made; through `say` and `show`",
    ),
    "audit export": "lines of other formats; tests/unit/audit/export forges what they show",
    "join-token create": "it takes no fingerprint that isn't one, and says its own words besides",
    "join": "tests/unit/logberg/client/test_node_joining.py forges what controllers answer",
    "audit report": "an HTML page; it has tests of its own",
    "audit prove": "paths that the caller gave, figures, and words of its own",
    "audit check-proof": "through `say`; tests/unit/logberg/commands/test_prove.py forges a cause",
    "audit check-heads": "names of files that the caller gave, figures, and words of its own",
    "audit serve": "a page in a browser; it has tests of its own",
    **dict.fromkeys(
        ("import etcd", "import consul", "import cassandra"),
        "they read a server, and show what they read as `import zookeeper --layout plain` does",
    ),
    "coordination lock": "the words are the command's own; tests/process/test_held_commands.py",
    "coordination elect": "the same",
    "audit generate": "a history that is made up here",
    **dict.fromkeys(
        ("backup create", "backup list", "backup verify", "backup restore", "backup drill"),
        "they show a backup's header; tests/unit/logberg/backups/test_commands.py forges one",
    ),
    "quorum recover": "paths and node ids that the caller gave, figures, and words of its own",
    "audit query": "it reads kept tables; tests/audit_sql/test_queries.py forges them",
}


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name))


def test_every_command_has_a_row() -> None:
    assert isinstance(cli, click.Group)
    assert sorted(leaves(cli)) == sorted([*SERVER, *FILES, *NEITHER])


def test_commands_write_through_one_file() -> None:
    folder = Path(commands.__file__).parent
    direct = re.compile(r"click\.s?echo\(|(?<![\w.])print\(|std(out|err)\.write|\.print\(")
    found = {path.name for path in folder.rglob("*.py") if direct.search(path.read_text())}
    # A shell reads the one's words; above its live table, the other prints what `drawn` made safe.
    assert found == {"completion.py", "shown_cluster.py"}


def marked(field: str, nasty: str) -> str:
    """A value that says which field it is, and ends in what a terminal must not obey."""
    return f"«{field}»{nasty}«end»"


def build(of: Any, nasty: str, field: str = "") -> Any:
    """A value of a type in which every string is nasty."""
    if isinstance(of, inspect.StructType):
        return {
            part.encode_name: build(part.type, nasty, f"{of.cls.__name__}.{part.name}")
            for part in of.fields
        }
    if isinstance(of, inspect.UnionType):
        return build(max(of.types, key=_richness), nasty, field)
    if isinstance(of, inspect.ListType | inspect.VarTupleType | inspect.SetType):
        return [build(of.item_type, nasty, field)]
    if isinstance(of, inspect.DictType):
        return {marked(f"{field}.key", nasty): build(of.value_type, nasty, field)}
    if isinstance(of, inspect.AnyType):
        name = marked(f"{field}.key", nasty)
        return {name: marked(field, nasty), "baseOffset": 1, "count": 1}
    if isinstance(of, inspect.EnumType):
        return next(iter(of.cls)).value
    if isinstance(of, inspect.StrType):
        return marked(field, nasty)
    if isinstance(of, inspect.BytesType):
        return "c2VjcmV0"
    plain: dict[type, object] = {
        inspect.BoolType: True,
        inspect.IntType: 1,
        inspect.FloatType: 1.0,
    }
    return plain.get(type(of))


def _richness(of: inspect.Type) -> int:
    kinds = (inspect.NoneType, inspect.IntType, inspect.StrType, inspect.StructType)
    return kinds.index(type(of)) if type(of) in kinds else len(kinds)


def replies(nasty: str) -> Callable[[str, str], tuple[str, bytes]]:
    """A controller whose every answer is as the route says, and nasty."""

    def answer(method: str, target: str) -> tuple[str, bytes]:
        parts = urlsplit(target)
        wanted = parts.path.split("/")
        for route in ROUTES:
            segments = route.path.split("/")
            if route.method != method or len(segments) != len(wanted):
                continue
            if all(a == b or a.startswith("{") for a, b in zip(segments, wanted, strict=True)):
                if route.path == "/metrics":
                    return "200 OK", b""
                in_words = "format=json" in parts.query
                body = build(inspect.type_info(LogReply if in_words else route.reply), nasty)
                if in_words:
                    body["batches"][0]["offset"] = 0
                    record = body["batches"][0]["records"][0]
                    # `explain` shows records of the thing that it is asked about.
                    topic_id = marked("DescribePartitionReply.topic_id", nasty)
                    record["type"] = "PARTITION_BROKER" + record["type"]
                    record["data"] |= {"topicId": topic_id, "partitionId": 0, "brokerId": 1}
                body |= {"dryRun": "dryRun" in parts.query, "active": True}
                for last in ("nextAfter", "next", "continuation"):
                    body.pop(last, None)
                return f"{route.status} OK", json.dumps(body).encode()
        raise AssertionError(f"no route for {method} {target}")

    return answer


def refusals(nasty: str) -> Callable[[str, str], tuple[str, bytes]]:
    body = json.dumps(build(inspect.type_info(ErrorReply), nasty)).encode()
    return lambda _method, _target: ("400 Bad Request", body)


def fields_of(printed: str) -> set[str]:
    return {piece.partition("»")[0] for piece in printed.split("«")[1:]} - {"end"}


def check(printed: str, kind: str) -> None:
    """Nothing for a terminal to obey, and no line that isn't ours."""
    bad = {c for c in printed if c != "\n" and unicodedata.category(c) in UNSAFE}
    assert not bad, f"{bad!r} in {printed!r}"
    assert not [line for line in printed.splitlines() if line.lstrip().startswith(FORGED)], printed
    if kind == "markup":
        # As many as there are of the fields: none was taken for rich's own.
        assert printed.count("[/x][bold red][link=https://evil.example]x[/]") == printed.count(
            "«end»"
        )


@pytest.fixture(scope="module")
def controller() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize("answering", [replies, refusals])
@pytest.mark.parametrize("kind", NASTY)
@pytest.mark.parametrize("command", SERVER)
def test_what_controllers_answer(
    controller: Listener, command: str, kind: str, answering: Any, output: str
) -> None:
    for number in range(len(SERVER[command])):
        printed = asked_of(controller, command, number, NASTY[kind], answering, output)
        plain = plainly(controller, command, number, answering, output)
        check(printed, kind)
        assert fields_of(printed) == fields_of(plain)
        assert fields_of(printed) or command in PLAIN


def asked_of(
    controller: Listener, command: str, number: int, nasty: str, answering: Any, output: str
) -> str:
    """Return what a command prints when every text of the answer holds `nasty`."""
    controller.answer = answering(nasty)
    where = ["--controllers", controller.url, "-o", output, "--timeout", "2"]
    return run_whole(*command.split(), *SERVER[command][number], *where).both


@functools.cache
def plainly(controller: Listener, command: str, number: int, answering: Any, output: str) -> str:
    """Return what it prints without that; the answers don't change."""
    return asked_of(controller, command, number, "", answering, output)


@pytest.mark.parametrize("kind", NASTY)
def test_a_state_that_there_is_not_is_refused_in_a_clean_sentence(
    controller: Listener, kind: str
) -> None:
    def lies(method: str, target: str) -> tuple[str, bytes]:
        status, body = replies("")(method, target)
        answer = json.loads(body)
        answer["brokers"][0]["state"] = marked("state", NASTY[kind])
        return status, json.dumps(answer).encode()

    controller.answer = lies
    said = run_whole("brokers", "list", "--controllers", controller.url, "--timeout", "2")
    assert (said.code, said.out) == (1, "")
    assert "did not answer with ListBrokersReply" in said.err
    check(said.err, kind)


# Files.

HISTORY = 230
"""Batches: enough for every kind of record."""
LEGAL = frozenset({FeatureLevelRecord, PseudonymRecord})
"""Records whose names decide what replay makes of them: they stay as they are."""


def spiced(value: Any, nasty: str) -> Any:
    """A record with every string nasty, the same one always in the same way."""
    if isinstance(value, str):
        # Numbers are settings' values; replay reads them.
        return value if not value or value.lstrip("-").isdigit() else marked(value, nasty)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(spiced(each, nasty) for each in value)
    if isinstance(value, msgspec.Struct) and type(value) not in LEGAL:
        return msgspec.structs.replace(
            value,
            **{part: spiced(getattr(value, part), nasty) for part in value.__struct_fields__},
        )
    return value


def hostile_provenance(nasty: str) -> Provenance:
    texts: dict[str, Any] = {
        part.name: marked(f"Provenance.{part.name}", nasty)
        for part in msgspec.structs.fields(Provenance)
        if part.type is str
    }
    return Provenance(**texts)


def write_history(folder: Path, nasty: str) -> int:
    """A node's folder with a nasty history. Returns its log end."""
    written = [
        batch._replace(records=tuple(spiced(record, nasty) for record in batch.records))
        for batch in History(1).batches(HISTORY)
    ]
    images = write_node(folder, written=written, provenance=hostile_provenance(nasty))
    return images[-1].offset


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, int]]:
    made = {}
    for nasty in (EVERYTHING, ""):
        # The folder's own name is shown, too.
        name = marked("folder", nasty).replace("/", "").replace("\x00", "")
        folder = tmp_path_factory.mktemp("node") / name
        made[nasty] = folder, write_history(folder, nasty)
    return made


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize("command", FILES)
def test_what_files_say(nodes: dict[str, tuple[Path, int]], command: str, output: str) -> None:
    for arguments in FILES[command]:
        printed = []
        for (folder, end), (other, _) in zip(nodes.values(), reversed(nodes.values()), strict=True):
            fill = {WHERE: str(folder), OTHER: str(other), "<end>": str(end)}
            filled = [fill.get(argument, argument) for argument in arguments]
            printed.append(run_whole(*command.split(), *filled, "-o", output).both)
        hostile, plain = printed
        check(hostile, "files")
        assert fields_of(hostile) == fields_of(plain)


def test_the_history_has_every_string_field() -> None:
    seen = set()

    def look(value: Any) -> None:
        if isinstance(value, tuple):
            for each in value:
                look(each)
        elif isinstance(value, msgspec.Struct):
            for part in value.__struct_fields__:
                found = getattr(value, part)
                if found and isinstance(found, str):
                    seen.add((type(value), part))
                look(found)

    for batch in History(1).batches(HISTORY):
        look(batch.records)
    wanted = {
        (cls, part.name)
        for cls in RECORD_CLASSES
        for part in msgspec.structs.fields(cls)
        if part.type in (str, str | None)
    }
    assert wanted - seen == set()


# Terminals.


def on_terminal(part: Any) -> str:
    screen = Console(file=io.StringIO(), force_terminal=True, width=60, highlight=False)
    screen.print(drawn(part))
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


def test_a_table_on_a_terminal_obeys_nobody_and_cuts_nothing() -> None:
    cells = [marked("cell", EVERYTHING), Text(marked("styled", EVERYTHING), "red")]
    sheet = table([marked("heading", EVERYTHING), "b"], [cells], marked("title", EVERYTHING))
    printed = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal(sheet))
    bad = {c for c in printed if c != "\n" and unicodedata.category(c) in UNSAFE}
    assert bad == set()
    # What is too long goes on below.
    assert "…" not in printed
    assert printed.count("«") == 2 * printed.count("end»")
    assert "[/x]" in on_terminal(marked("line", EVERYTHING))


def test_what_is_piped_is_whole() -> None:
    name = "n" * 249
    lines = table(["topic", "id"], [[name, 1], ["b" * 249, 22]], "all").lines()
    assert lines == ["all", "topic" + " " * 246 + "id", name + "   1", "b" * 249 + "  22"]


@pytest.mark.parametrize("text", ["plain", "Grüße, 世界", "[/x]", "a\\b"])
def test_text_stays_as_it_is(text: str) -> None:
    assert shown(text) == text


def test_json_is_the_same_document() -> None:
    value = {marked("name", EVERYTHING): marked("value", EVERYTHING + "\U000e0001")}
    runner = CliRunner()
    with runner.isolation() as (out, _, _):
        print_json(value)
        print_line(value)
        printed = out.getvalue().decode()
    check(printed, "json")
    document, _, line = printed.rstrip("\n").rpartition("\n")
    assert json.loads(document) == json.loads(line) == value
