"""The command line's manners: exit codes, stdout and stderr."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def logberg(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "logberg", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_lists_every_command() -> None:
    shown = logberg("--help")
    assert shown.returncode == 0
    for name in ("demo", "up", "status", "quorum", "brokers", "topics", "log"):
        assert f"\n  {name} " in shown.stdout


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["topics"], ["topics", "create"], ["brokers", "describe", "one"]]
)
def test_wrong_usage_exits_2_and_says_so_on_stderr(arguments: list[str]) -> None:
    shown = logberg(*arguments)
    assert shown.returncode == 2
    assert shown.stdout == ""
    assert "Usage:" in shown.stderr


def test_a_cluster_that_does_not_answer_exits_1_with_a_sentence() -> None:
    shown = logberg("topics", "list", "--controllers", "http://127.0.0.1:1", "--timeout", "0.3")
    assert shown.returncode == 1
    assert shown.stdout == ""
    assert "http://127.0.0.1:1 does not answer" in shown.stderr
    assert "Traceback" not in shown.stderr


def test_a_folder_without_a_log_says_what_was_expected(tmp_path: Path) -> None:
    shown = logberg("log", "verify", str(tmp_path))
    assert shown.returncode == 1
    assert "name a controller's folder" in shown.stderr


def test_a_cluster_id_is_22_characters() -> None:
    assert len(logberg("cluster-id").stdout.strip()) == 22


def test_status_of_nobody_is_still_json(tmp_path: Path) -> None:
    shown = logberg(
        "status", "--controllers", "http://127.0.0.1:1", "--data", str(tmp_path), "--output", "json"
    )
    assert shown.returncode == 1
    found = json.loads(shown.stdout)
    assert found["active"] is None
    assert found["controllers"][0]["role"] == "down"
    assert "no controller is active" in shown.stderr
