"""Long work shows its progress on stderr, and writes only to the named place."""

import io
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from logberg.cli.main import cli as main
from logberg.cli.progress import progress, telling


def test_without_a_terminal_progress_is_a_line_now_and_then(capfd):
    with progress("reading the log", line_every_s=0.0) as tell:
        tell(0, 0)
        tell(50, 200)
        tell(300, 200)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == "reading the log: 25%\nreading the log: 100%\n"


def test_work_that_ends_soon_says_nothing(capfd):
    with progress("reading the log") as tell:
        tell(50, 200)
    assert capfd.readouterr().err == ""


def test_work_that_counts_itself_is_asked_now_and_then(capfd):
    asked = threading.Semaphore(0)

    def standing() -> str:
        asked.release()
        return "stage 3, 7 of 9 tasks"

    with telling(standing, line_every_s=0.01):
        assert asked.acquire(timeout=60)
        assert asked.acquire(timeout=60)
    assert "s: stage 3, 7 of 9 tasks\n" in capfd.readouterr().err


def test_work_that_waits_says_nothing(capfd):
    asked = threading.Semaphore(0)

    def waiting() -> str:
        asked.release()
        return ""

    with telling(waiting, line_every_s=0.01):
        assert asked.acquire(timeout=60)
        assert asked.acquire(timeout=60)
    assert capfd.readouterr().err == ""


def commands_that_write(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the words of each command that has `--out`."""
    found = []
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            found += commands_that_write(command, (*path, name))
        elif command is not None and any("--out" in p.opts for p in command.params):
            found.append((*path, name))
    return found


WRITING = commands_that_write(main)


def test_there_are_commands_that_write():
    assert ("audit", "run") in WRITING
    assert ("audit", "report") in WRITING


URLS = ("s3://bucket/out", "gs://bucket/a.csv", "file:///tmp/out")
REFUSED = [
    (words, url)
    for words in WRITING
    for url in URLS
    if (words[-1], url) != ("run", "s3://bucket/out")
]


@pytest.mark.parametrize(("words", "url"), REFUSED, ids=str)
def test_a_url_is_no_place_to_write_to(words, url, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command: click.Command = main
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    jobs = ["changes"] if words[-1] == "run" else []
    places = {"generate": [], "prove": ["0"]}.get(words[-1], ["somewhere"])
    done = CliRunner().invoke(main, [*words, *jobs, *places, "--out", url])
    assert done.exit_code == 2, done.output
    assert "is a URL, but this command writes only to this machine" in done.output.replace("\n", "")
    assert list(tmp_path.iterdir()) == []


def test_a_bar_needs_a_terminal(monkeypatch):
    """A terminal gets a bar instead of lines."""
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    with progress("reading the log", line_every_s=0.0) as tell:
        tell(50, 200)
    assert "reading the log: 25%" not in written.getvalue()
