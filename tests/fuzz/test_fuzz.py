"""Every parser of bytes from elsewhere: a short run of its fuzzer, and all that was ever found.

`make fuzz` runs longer and follows coverage. LOGBERG_EXAMPLES sets how many inputs are drawn here.
"""

import os
import re

import pytest
from hypothesis import HealthCheck, given, settings

from tests.docs.source import ROOT
from tests.fuzz.__main__ import FOUND, main
from tests.fuzz.damage import damaged
from tests.fuzz.table import TARGETS
from tests.fuzz.target import FuzzTarget

EXAMPLES = int(os.environ.get("LOGBERG_EXAMPLES", "60"))
ALL = pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
KEPT_BYTES_MAX = 64 * 1024


@ALL
def test_a_seed_is_accepted(target: FuzzTarget) -> None:
    """Else a fuzzer only ever tests the first check."""
    accepted = [target.accepts(seed) for seed in target.seeds()]
    assert accepted
    if target.name != "kafka-logins":  # nobody has the password
        assert sum(accepted) >= len(accepted) // 2


@ALL
def test_damaged_bytes_are_refused_or_read(target: FuzzTarget) -> None:
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(damaged(target.seeds()))
    def feed(data: bytes) -> None:
        target.feed(data)

    feed()


@ALL
def test_a_repair_changes_nothing_that_is_sound(target: FuzzTarget) -> None:
    if target.repair is not None:
        assert [target.repair(seed) for seed in target.seeds()] == target.seeds()


def kept() -> list[tuple[str, str]]:
    return [(file.parent.name, file.name) for file in sorted(FOUND.glob("*/*"))]


@pytest.mark.parametrize(("name", "file"), kept())
def test_what_was_found_once_is_mended(name: str, file: str) -> None:
    TARGETS[name].feed((FOUND / name / file).read_bytes())


def test_what_is_kept_is_small() -> None:
    assert sum(file.stat().st_size for file in FOUND.glob("*/*")) < KEPT_BYTES_MAX


def test_a_finding_ends_a_run_and_is_made_small(capsys: pytest.CaptureFixture[str]) -> None:
    """The harness finds a parser that breaks at one byte."""

    def read(data: bytes) -> None:
        if b"\xc1" in data:
            raise ZeroDivisionError

    target = FuzzTarget("broken", "nothing", read, (ValueError,), lambda: [b"a seed"])
    found = []

    @settings(max_examples=2_000, database=None)
    @given(damaged(target.seeds()))
    def feed(data: bytes) -> None:
        found[:] = [data]
        target.feed(data)

    with pytest.raises(ZeroDivisionError):
        feed()
    assert b"\xc1" in found[0]
    assert len(found[0]) < 12


def test_the_page_lists_every_target() -> None:
    page = (ROOT / "docs" / "fuzzing.md").read_text().partition("## What was found")[0]
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \|", page, re.MULTILINE))
    assert rows == {name: target.reads for name, target in TARGETS.items()}


def test_one_target_runs_alone_for_some_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["receipts", "--seconds", "1", "--engine", "hypothesis"]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"receipts: \d+ inputs, \d+ a second, \d+ of them accepted, nothing found", said
    )


def test_an_unknown_target_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense", "--engine", "hypothesis"]) == 2
    assert "no target 'nonsense'" in capsys.readouterr().err
