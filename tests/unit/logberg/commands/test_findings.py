"""`logberg audit findings`: what it shows, its exit codes, its rules, and what sinks get."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from audit.findings.log_findings import of_log
from audit.generated import write_history
from audit.places.replicas import open_replicas
from audit.reading.feed import Question
from logberg.cli.command_tree import cli
from logberg.commands.audit import finding_output

RULE = """
[night_shift]
severity = "critical"
kinds = ["acl_added"]
principal = "User:connect"
gather = "1d"
sentence = "{principal} works at night: {details}"
"""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("history")
    write_history(folder, records=20_000, seed=4)
    return str(folder / "controller-1")


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["audit", "findings", *map(str, words)])


def documents(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_worst_comes_first_and_one_is_shown_in_full(log: str) -> None:
    done = run(log)
    assert done.exit_code == 0, done.output
    first = done.stdout.splitlines()[0]
    assert first.startswith("CRITICAL  stolen_identity@")
    full = run(log, "--id", first.split()[1])
    assert "User:mallory" in full.stdout
    assert "Ask the owner of the principal." in full.stdout
    assert f"logberg audit log {log} --from " in full.stdout


def test_it_is_read_at_80_columns(log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr(finding_output, "sys", terminal)
    lines = run(log).stdout.splitlines()
    assert 60 < max(map(len, lines)) <= 80


def test_json_has_what_the_list_has(log: str) -> None:
    found = json.loads(run(log, "--output", "json").stdout)
    expected = of_log(Question(open_replicas(log)))
    assert found == [one.as_json() for one in expected]
    assert [one["severity"] for one in found] == sorted(
        (one["severity"] for one in found), key=["critical", "high", "medium", "low"].index
    )


def test_severity_and_time_choose_what_is_shown(log: str) -> None:
    found = json.loads(run(log, "--output", "json").stdout)
    high = json.loads(run(log, "--severity", "high", "--output", "json").stdout)
    assert high == [one for one in found if one["severity"] in ("critical", "high")]
    stolen = found[0]
    later = json.loads(run(log, "--from", str(stolen["offset"]), "--output", "json").stdout)
    assert {one["id"] for one in later} < {one["id"] for one in found}
    assert stolen["id"] in {one["id"] for one in later}
    before = json.loads(run(log, "--to", str(stolen["offset"]), "--output", "json").stdout)
    assert stolen["id"] not in {one["id"] for one in before}


def test_a_users_rule_is_applied(log: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"[stolen_identity]\noff = true\n{RULE}")
    found = json.loads(run(log, "--rules", path, "--output", "json").stdout)
    assert found[0]["rule"] == "night_shift"
    assert found[0]["sentence"].startswith("User:connect works at night: allow ALL on ")
    assert "stolen_identity" not in {one["rule"] for one in found}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--id", "nothing@1"], 1, "there is no finding nothing@1"),
        (["--rules", "{tmp}/absent.toml"], 1, "absent.toml can't be read: No such file"),
        (["--rules", "{tmp}/bad.toml"], 1, "bad.toml, line 3: rule night_shift, severity: 'bad'"),
        (["--rules", "{tmp}/bytes.toml"], 1, "bytes.toml is not UTF-8"),
        (["--fail-on", "critical"], 3, ""),
        (["--fail-on", "critical", "--to", "2000"], 0, ""),
        (["--file", "{tmp}/out"], 2, "Sinks go with --follow."),
        (["--follow", "--to", "5"], 2, "--follow goes without --to"),
        (["--follow", "--file", "{tmp}/out"], 2, "Sinks need --spool FOLDER"),
        (["--follow", "--spool", "{tmp}/s"], 2, "Name a sink"),
        (["--follow", "--spool", "{tmp}/s", "--syslog", "host"], 2, "is no address of syslog"),
        (["--follow", "--spool", "{tmp}/s", "--webhook", "host"], 2, "no address of a webhook"),
        (
            [
                "--follow",
                "--spool",
                "{tmp}/s",
                "--webhook-secret={tmp}/open",
                "--webhook=http://h/",
            ],
            1,
            "others than its user may open",
        ),
    ],
)
def test_exit_codes_and_mistakes(
    words: list[str], code: int, said: str, log: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.toml").write_text(RULE.replace("critical", "bad"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    (tmp_path / "open").write_text("secret\n")
    (tmp_path / "open").chmod(0o644)
    done = run(log, *(word.format(tmp=tmp_path) for word in words))
    assert done.exit_code == code, done.output
    assert said in done.stderr
    assert "Traceback" not in done.output


def test_following_gives_each_finding_to_the_file_once(log: str, tmp_path: Path) -> None:
    out, spool = tmp_path / "findings.jsonl", tmp_path / "spool"
    end = open_replicas(log)[0].reader().log_end
    follow = [log, "--follow", "--file", str(out), "--spool", str(spool)]
    half = str(end // 2)
    done = run(*follow, "--from", "0", "--until-offset", half)
    assert done.exit_code == 0, done.output
    early = {one["id"] for one in documents(out.read_text())}
    done = run(*follow, "--until-offset", str(end), "--output", "json")
    assert done.exit_code == 0, done.output
    assert "the last run ended at offset " in done.stderr
    got = documents(out.read_text())
    expected = {one.id for one in of_log(Question(open_replicas(log)))}
    assert {one["id"] for one in got} == expected
    assert early < expected
    forms = [(one["id"], one["count"]) for one in got]
    assert len(forms) == len(set(forms)), "a finding came twice in the same form"
    assert documents(done.stdout) == got[-len(documents(done.stdout)) :]


def test_following_from_the_end_tells_nothing_old(log: str, tmp_path: Path) -> None:
    end = open_replicas(log)[0].reader().log_end
    done = run(log, "--follow", "--until-offset", str(end))
    assert (done.exit_code, done.stdout) == (0, "")
