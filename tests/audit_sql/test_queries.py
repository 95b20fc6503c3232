"""The ready queries and `logberg audit query`, over kept tables of a made-up history."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("duckdb")
pytest.importorskip("deltalake")

from audit.generated import batches as generated
from audit.lake.commit import commit
from audit.lake.files import write_file
from audit.lake.place import LakePlace
from audit.lake.queries.catalogue import VIEWS, ready_queries
from audit.lake.queries.running import QueryError, run_query, run_sql
from audit.lake.schemas import arrow_schema, rows_to_kept
from audit.tables import BOOL, CHANGES, FINDINGS, INT, INTS, TEXT
from logberg.cli.command_tree import cli
from tests.audit_sql.keeping import keep
from tests.docs.source import ROOT
from tests.unit.logberg.edge import run_whole

_SOMETHING = {TEXT: "2026-01-01", INT: 1, INTS: (1,), BOOL: True}
EMPTY = {"findings"}
"""Nothing finds anything in what the tests keep."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> LakePlace:
    """A folder `audited`, as the page has it."""
    where = tmp_path_factory.mktemp("kept") / "audited"
    return keep(list(generated(1, days=2)), str(where))


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["audit", "query", *arguments])
    return done.exit_code, done.output


def given(name: str, place: LakePlace) -> dict[str, str]:
    if name != "topic-history":
        return {}
    return {"topic": run_sql(place, "SELECT min(topic_name) FROM partition_events").rows[0][0]}


@pytest.mark.parametrize("name", ready_queries())
def test_each_query_answers(name: str, place: LakePlace) -> None:
    query = ready_queries()[name]
    assert query.sentence.endswith(".")
    assert query.tables()
    answer = run_query(place, query, given(name, place))
    assert (answer.rows == []) == (name in EMPTY)
    assert run_query(place, query, given(name, place)) == answer, "the order is fixed"


def test_answers_are_those_of_the_tables(place: LakePlace) -> None:
    """Three queries, each computed a second time in Python."""
    queries = ready_queries()
    kept = {name: run_sql(place, f"FROM {name}") for name in ("changes", "privileged")}
    counts: dict[str, int] = {}
    for _, principal, _, _, count, *_ in kept["changes"].rows:
        counts[principal] = counts.get(principal, 0) + count
    found = run_query(place, queries["changes-by-principal"], {}).rows
    assert {row[0]: row[1] for row in found} == counts
    found = run_query(place, queries["access-changes"], {}).rows
    wanted = [row[0] for row in kept["privileged"].rows if row[3] in ("acl", "user", "token")]
    assert [row[0] for row in found] == sorted(wanted)
    for row in run_query(place, queries["config-drift"], {}).rows:
        assert row[2] != row[3]


def test_the_page_s_commands_run(place: LakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(place.where).parent)
    page = (ROOT / "docs" / "audit" / "queries.md").read_text()
    lines = re.findall(r"^\$ logberg audit query (.*)$", page, re.MULTILINE)
    assert len(lines) == 7
    for line in lines:
        code, printed = run(*shlex.split(line))
        assert code == 0, f"{line}: {printed}"


def test_the_program_on_the_page_of_tables_runs(
    place: LakePlace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path(place.where).parent)
    page = (ROOT / "docs" / "audit" / "tables.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(program, {})
    assert "User:" in capsys.readouterr().out


def test_the_worst_findings_come_first(tmp_path: Path) -> None:
    place = LakePlace(str(tmp_path))
    at = {column.name: number for number, column in enumerate(FINDINGS.columns)}
    rows = []
    for offset, severity in enumerate(("low", "critical", "medium", "high", "critical")):
        row: list = [_SOMETHING[column.kind] for column in FINDINGS.columns]
        row[at["offset"]], row[at["severity"]] = offset, severity
        rows.append(tuple(row))
    file = write_file(place, "findings", rows_to_kept(rows, FINDINGS), "batch-0")
    commit(place, "findings", arrow_schema(FINDINGS), [file], batch=0)
    found = run_query(place, ready_queries()["findings"], {}).rows
    assert [row[0] for row in found] == [4, 1, 3, 2, 0]


def test_the_list_and_json(place: LakePlace) -> None:
    code, printed = run(place.where, "--output", "json")
    assert code == 0
    assert [query["name"] for query in json.loads(printed)] == list(ready_queries())
    said = 'SELECT "timestamp", day, NULL AS none, [1, 2] AS some FROM bronze LIMIT 1'
    code, printed = run(place.where, "--sql", said, "-o", "json")
    (row,) = json.loads(printed)
    assert re.fullmatch(r"2026-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row["timestamp"])
    assert row["day"] == row["timestamp"][:10]
    assert row["none"] is None
    assert row["some"] == [1, 2]


@pytest.mark.parametrize(
    "sql",
    [
        "COPY changes TO '/tmp/out.csv'",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/passwd')",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH '/tmp/other.duckdb'",
        "SET enable_external_access = true",
        "SELECT getenv('HOME')",
        "DROP VIEW changes",
        "DELETE FROM changes",
        "SELECT * FROM VIEWS",
    ],
)
def test_a_query_sees_the_kept_tables_and_nothing_else(sql: str, place: LakePlace) -> None:
    before = run_sql(place, "SELECT count(*) FROM changes")
    code, printed = run(place.where, "--sql", sql)
    assert code == 1, printed
    assert run_sql(place, "SELECT count(*) FROM changes") == before
    assert not Path("/tmp/out.csv").exists()


def test_mistakes_are_named(place: LakePlace, tmp_path: Path) -> None:
    where = place.where
    for arguments, said in (
        ((where, "nothing"), "there is no query 'nothing'; there are changes-by-principal"),
        ((where, "--sql", "SELEC 1"), "syntax error"),
        ((where, "--sql", "SELECT missing FROM changes"), '"missing" not found'),
        ((where, "leaderless", "--set", "a=1"), "leaderless has no parameter a; it takes no par"),
        ((where, "outside-hours", "--set", "from_hour=x"), "Could not convert string 'x'"),
        ((str(tmp_path / "none"), "leaderless"), "none holds no kept tables. Keep tables first"),
        ((where, "--sql", "CREATE TABLE mine (a INT)"), "a query is one SELECT"),
    ):
        code, printed = run(*arguments)
        assert code == 1, printed
        assert said in printed
    for arguments in ((where, "leaderless", "--sql", "x"), (where, "leaderless", "--set", "a")):
        assert run(*arguments)[0] == 2
    only = LakePlace(str(tmp_path / "part"))
    _put_changes(only, "gold/availability", [])
    with pytest.raises(QueryError, match=r"the query reads gold/changes, and .* doesn't hold"):
        run_query(only, ready_queries()["changes-by-principal"], {})


def test_text_that_others_wrote_doesn_t_control_the_terminal(tmp_path: Path) -> None:
    place = LakePlace(str(tmp_path))
    nasty = "\x1b[31m\u202e\nforged line\x9b"
    _put_changes(place, VIEWS["changes"], [("2026-01-01", nasty, nasty, "T", 1, 2, 3, 4, 5)])
    for arguments in (
        ["changes-by-principal"],
        ["--sql", "FROM changes"],
        ["--sql", f"SELECT {nasty}"],
    ):
        for form in ("table", "json"):
            printed = run_whole("audit", "query", str(tmp_path), *arguments, "-o", form).both
            assert not set(printed) & set("\x1b\u202e\x9b")
            assert not re.search("^forged line", printed, re.MULTILINE)


def _put_changes(place: LakePlace, path: str, rows: list) -> None:
    file = write_file(place, path, rows_to_kept(rows, CHANGES), "batch-0")
    commit(place, path, arrow_schema(CHANGES), [file], batch=0)
