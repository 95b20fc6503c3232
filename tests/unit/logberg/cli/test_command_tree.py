"""A command imports only what it needs."""

import subprocess
import sys

import pytest

_SHOW = """
import gc
import sys
from logberg.cli.main import main
try:
    main()
except SystemExit as leaving:
    assert not leaving.code, leaving.code
print("gc is", "enabled" if gc.isenabled() else "disabled")
print(*sorted(sys.modules), sep="\\n")
"""


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_help_imports_no_command_and_no_library_of_one(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SHOW, *arguments], check=True, capture_output=True, text=True
    )
    shown = set(done.stdout.splitlines())
    assert not {name for name in shown if name.startswith("logberg.commands.")}
    for name in ("aiohttp", "rich", "structlog", "controller", "broker_agent", "audit", "quorum"):
        assert name not in shown


def test_a_command_imports_no_other_command() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SHOW, "controller", "--help"],
        check=True,
        capture_output=True,
        text=True,
    )
    shown = set(done.stdout.splitlines())
    assert "logberg.processes.controller_process" in shown
    assert "gc is enabled" in done.stdout
    for name in (
        "logberg.commands.status",
        "logberg.commands.broker",
        "logberg.cli.output",
        "audit",
    ):
        assert name not in shown
