"""Environment variables, completion, suggestions, and output into a closed pipe."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from logberg.cli.command_tree import cli
from tests.unit.audit.nodes import write_node
from tests.unit.logberg.edge import run_whole
from tests.unit.logberg.listener import Listener

CONNECTION = {
    "--controllers": "LOGBERG_CONTROLLERS",
    "--data": "LOGBERG_DATA",
    "--token-file": "LOGBERG_TOKEN_FILE",
    "--send-token-in-clear": "LOGBERG_SEND_TOKEN_IN_CLEAR",
    "--ca": "LOGBERG_CA",
    "--cert": "LOGBERG_CERT",
    "--key": "LOGBERG_KEY",
    "--timeout": "LOGBERG_TIMEOUT",
    "--output": "LOGBERG_OUTPUT",
}


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def test_every_option_of_a_connection_has_a_variable_that_help_shows() -> None:
    assert isinstance(cli, click.Group)
    asking = 0
    for path, command in leaves(cli):
        options = {option: each for each in command.params for option in each.opts}
        assert "-o" in options or "--output" not in options, path
        # The token of `audit serve` is what its own callers must show.
        if "--token-file" in options and path != "audit serve":
            asking += 1
            help_text = run_whole(*path.split(), "--help").out
            for option, variable in CONNECTION.items():
                assert options[option].envvar == variable
                assert variable in help_text, (path, variable)
    assert asking >= 9


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["topcs"], "'topics'"),
        (["topics", "creat"], "'create'"),
        (["audit", "historee"], "'history'"),
        (["brokers", "unregiser", "1"], "'unregister'"),
        (["brokers", "list", "--controler", "x"], "--controllers"),
        (["log", "dump", "--show-secret"], "--show-secrets"),
    ],
)
def test_what_was_mistyped_gets_a_suggestion(typed: list[str], meant: str) -> None:
    said = run_whole(*typed)
    assert said.code == 2
    assert "Did you mean" in said.err
    assert meant in said.err
    assert said.err.count("Did you mean") == 1


@pytest.mark.parametrize("typed", [["xyzzy"], ["topics", "xyzzy"]])
def test_what_is_like_nothing_gets_none(typed: list[str]) -> None:
    said = run_whole(*typed)
    assert said.code == 2
    assert "No such command 'xyzzy'" in said.err
    assert "Did you mean" not in said.err


def program(*arguments: str, **more: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "logberg", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **more,
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    done = program("completion", shell)
    assert done.returncode == 0, done.stderr
    assert f"_LOGBERG_COMPLETE={shell}_complete" in done.stdout
    assert "logberg" in done.stdout
    if shell == "bash":
        checked = subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=False)
        assert checked.returncode == 0


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("logberg to", "topics"),
        ("logberg audit h", "history"),
        ("logberg topics cr", "create"),
        ("logberg brokers list --tok", "--token-file"),
        ("logberg brokers list --output j", "json"),
    ],
)
def test_completion_completes(typed: str, offered: str) -> None:
    words = {
        "_LOGBERG_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }
    done = program(env={**os.environ, **words})
    assert offered in done.stdout, done.stderr


# Whoever reads has had enough.

SERVICES = (
    *("demo", "up", "kafka up", "kafka tool", "controller", "broker"),
    *("coordination lock", "coordination elect"),
)
"""`up` has its own test with processes, and so have those that hold something for a command."""
QUIET = (
    *(*SERVICES, "audit report", "audit generate", "audit follow", "audit holders", "import"),
    *("backup", "certs", "quorum recover", "quorum replace", "quorum transfer"),
    *("support-bundle", "log archive run", "audit prove", "audit check-proof"),
    *("audit check-heads", "witness", "join"),
)
"""These take long, read or write files of their own, find nothing in this log, ask a store of
another maker, or want an answer that fits their question."""
ARGUMENTS = {
    # As text these end with 1: each thing in the stand-in's reply has an error.
    "acls add": ["User:a", "read", "topic:a", "-o", "json"],
    "acls remove": ["--all", "-o", "json"],
    "partitions add": ["a", "2", "-o", "json"],
    "quotas remove": ["producer_byte_rate", "--ip", "<default>", "-o", "json"],
    "quotas set": ["producer_byte_rate=1", "--user", "a", "-o", "json"],
    "topics create": ["a", "-o", "json"],
    "users scram delete": ["a", "-o", "json"],
    "users scram set": ["a", "--password-file", "{line}", "-o", "json"],
    "audit who": ["{node}", "topic:*"],
    "audit export": ["{node}", "--format", "cef"],
    "audit history": ["{node}", "quorum"],
    "audit diff": ["{node}", "0", "end"],
    "audit run": ["log", "{node}"],
    "audit compare": ["{node}", "{node}/../other"],
    "audit query": ["{node}"],
    "completion": ["bash"],
    "kafka metadata-log": ["{node}", "--out", "{node}/../for-kafka"],
    "cluster-id": [],
    "cluster-key": ["{node}/../cluster.key"],
}
"""Of what asks no controller, or needs others here than in the table of `test_terminal`."""


def paths() -> list[str]:
    assert isinstance(cli, click.Group)
    return [path for path, _ in leaves(cli) if not path.startswith(QUIET)]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nodes")
    for name in ("node", "other"):
        # No transaction is open at its end: commands say so on stderr.
        write_node(folder / name, batches=26)
    return folder / "node"


@pytest.fixture(scope="module")
def controller() -> Iterator[Listener]:
    from tests.unit.logberg.commands.test_terminal import replies  # noqa: PLC0415 - slow

    listener = Listener()
    listener.answer = replies("")
    yield listener
    listener.close()


QUICK = {"status", "log dump", "audit log"}
"""The commands of this test in `make unit`: each one starts a process."""


@pytest.mark.parametrize(
    "path",
    [path if path in QUICK else pytest.param(path, marks=pytest.mark.slow) for path in paths()],
)
def test_a_pipe_that_nobody_reads_ends_quietly_with_0(
    path: str, node: Path, controller: Listener
) -> None:
    from tests.unit.logberg.commands.test_terminal import LINE_FILE, SERVER  # noqa: PLC0415 - slow

    default = ["{node}"] if path.startswith(("log", "audit")) else SERVER.get(path, [[]])[-1]
    arguments = [word.format(node=node, line=LINE_FILE) for word in ARGUMENTS.get(path, default)]
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "logberg", *path.split(), *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "LOGBERG_CONTROLLERS": controller.url},
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_head_of_a_long_dump_ends_it_quietly(tmp_path: Path) -> None:
    write_node(tmp_path / "node", batches=400)
    for more in ("", "-o json"):
        script = f"{sys.executable} -m logberg log dump {tmp_path}/node {more} | head -1; "
        done = subprocess.run(
            ["bash", "-c", script + "exit ${PIPESTATUS[0]}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_that_cannot_be_written_is_a_sentence(node: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "logberg", "audit", "state", str(node)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
