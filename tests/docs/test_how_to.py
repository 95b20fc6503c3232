"""docs/how-to.md does what it says: its commands run as they stand, against real processes.

Changed on the way: ports, so that nothing that runs here is in the way, and 10.0.0.N, which becomes
127.0.0.N.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from logberg.local.ports import free_port_base
from tests.docs.pages import MAIN, Step, fits, steps
from tests.docs.shell import Shell
from tests.docs.source import ROOT

pytestmark = [pytest.mark.process, pytest.mark.slow]
STEPS = steps(ROOT / "docs" / "how-to.md")
READY_S = 90.0


@contextmanager
def shell_in(folder: Path) -> Iterator[Shell]:
    """A shell whose background processes must all end in order."""
    shell = Shell(folder)
    try:
        yield shell
    finally:
        codes = shell.stop()
    assert set(codes) <= {0}, f"exit codes {codes}\n{shell.said()}"


def take(shell: Shell, step: Step, base: int) -> None:
    """Do one step, and see that the page is right."""
    command = step.command.replace("10.0.0.", "127.0.0.")
    command = re.sub(r"\b9([012])91\b", lambda m: str(base + int(m[1]) * 100 + 91), command)
    if step.background:
        if command.startswith("logberg up"):
            command += f" --port-base {base}"
        shell.start(command)
        return
    code, printed = shell.run(command)
    where = f"docs/how-to.md, line {step.line}: {command}\nprinted:\n{printed}\n{shell.said()}"
    if step.expected is None:
        assert code == 0, where
        return
    expected = step.expected.replace("10.0.0.", "127.0.0.")
    expected = re.sub(r"\b9([012])91\b", lambda m: str(base + int(m[1]) * 100 + 91), expected)
    assert fits(expected, printed), where


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where `logberg up` runs, as the page begins."""
    folder = tmp_path_factory.mktemp("how-to")
    with shell_in(folder) as shell:
        first = STEPS[MAIN][0]
        assert first.background
        assert first.command.startswith("logberg up")
        take(shell, first, free_port_base())
        output = folder / "background-1.txt"
        until = time.monotonic() + READY_S
        while "ready:" not in output.read_text():
            assert shell.background[0].poll() is None, shell.said()
            assert time.monotonic() < until, shell.said()
            time.sleep(0.1)
        yield folder


def test_the_local_cluster_does_what_the_page_says(folder: Path) -> None:
    rest = STEPS[MAIN][1:]
    assert len(rest) > 30
    with shell_in(folder) as shell:
        for step in rest:
            take(shell, step, 0)


BY_HAND = ("one", "both", "beside", "kafka", "three", "racks")


@pytest.mark.parametrize("name", BY_HAND)
def test_controllers_by_hand_do_what_the_page_says(name: str, tmp_path: Path) -> None:
    assert any(step.background for step in STEPS[name])
    base = free_port_base()
    with shell_in(tmp_path) as shell:
        for step in STEPS[name]:
            take(shell, step, base)


def test_no_block_belongs_to_a_shell_that_nobody_runs() -> None:
    assert set(STEPS) == {MAIN, *BY_HAND}


def test_every_file_of_a_cluster_is_in_the_reference(folder: Path) -> None:
    text = (ROOT / "docs" / "reference.md").read_text().partition("## Files")[2]
    cells = re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE)
    patterns = [
        re.compile(re.escape(name).replace(r"\*", "[^/]+").replace("N", "[0-9]+") + "(/.*)?")
        for cell in cells
        for name in re.findall("`([^`]+?)/?`", cell)
    ]
    data = folder / "logberg-data"
    roots = [data, *data.glob("controller-*"), *data.glob("broker-*")]
    files = [(root, path) for root in roots for path in root.rglob("*") if path.is_file()]
    assert len(files) > 20
    unknown = [
        path
        for root, path in files
        if not any(pattern.fullmatch(path.relative_to(root).as_posix()) for pattern in patterns)
    ]
    assert unknown == []


_CREATE_FOR_NINE = """
url=$(logberg status --output json | python3 -c '
import json, sys
print(next(c["url"] for c in json.load(sys.stdin)["controllers"] if c["active"]))')
curl -sS --cacert logberg-data/certs/ca.crt -H content-type:application/json \\
    -H "authorization: Bearer $(cat logberg-data/admin.token)" -d @- $url/v1/topics <<END
{"topics": [{"name": "for-nine", "assignments": [{"partitionIndex": 0, "brokerIds": [9]}]}]}
END
for i in $(seq 100); do
    grep -q 'lead for-nine' background-1.txt && exit 0
    sleep 0.1
done
exit 1
"""


def _example(folder: Path, name: str, seen: str, then: str = "") -> str:
    """Run an example until it printed `seen`, then send it `then` by a signal; all it printed."""
    shell = Shell(folder)
    try:
        shell.start(f"{sys.executable} {ROOT / 'examples' / name} {folder / 'logberg-data'}")
        until = time.monotonic() + 60
        while seen not in (folder / "background-1.txt").read_text():
            assert shell.background[0].poll() is None, shell.said()
            assert time.monotonic() < until, shell.said()
            time.sleep(0.1)
        if then:
            code, printed = shell.run(then)
            assert code == 0, printed
    finally:
        codes = shell.stop()
    said = (folder / "background-1.txt").read_text()
    assert "Traceback" not in said, said
    assert codes in ([0], [-15]), f"{codes}\n{said}"
    return said


def test_the_embedded_agent_joins_hears_and_leaves(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "logberg-data").symlink_to(folder / "logberg-data")
    (tmp_path / "create.sh").write_text(_CREATE_FOR_NINE)
    said = _example(tmp_path, "embed_agent.py", "online", "sh create.sh")
    assert "lead for-nine-0 at leader epoch 0" in said
    assert said.rstrip().splitlines()[-1].startswith("gone: "), said


def test_the_watch_shows_what_happened(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "logberg-data").symlink_to(folder / "logberg-data")
    said = _example(tmp_path, "watch_log.py", "BEGIN_EPOCH_RECORD")
    assert "0 Controller:" in said


def test_a_page_that_lies_is_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="line 7"), shell_in(tmp_path) as shell:
        take(shell, Step(7, "echo two", "three\n", False), 0)
    with pytest.raises(AssertionError, match="line 8"), shell_in(tmp_path) as shell:
        take(shell, Step(8, "false", None, False), 0)


@pytest.mark.parametrize(
    ("expected", "printed", "right"),
    [
        ("one … three\n", "one two three\n", True),
        ("one\n…\nfour\n", "one\ntwo\nthree\nfour\n", True),
        ("one\n…\nfour\n", "one\nfour\n", True),
        ("a  b\n", "a      b  \n\n", True),
        ("one\n", "one\ntwo\n", False),
        ("one\n…\n", "two\n", False),
        ("", "something\n", False),
    ],
)
def test_what_fits(expected: str, printed: str, right: bool) -> None:
    assert fits(expected, printed) is right


def test_a_command_that_hangs_is_given_up(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        with pytest.raises(AssertionError, match="not done after"):
            shell.run("sleep 30", limit_s=0.2)
    finally:
        subprocess.run(["kill", "-9", str(shell._bash.pid)], check=True)
        shell.stop()
