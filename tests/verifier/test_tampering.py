"""Every way to tamper is found, at its place; without a check some of them are not."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.verifier.tamper import KINDS, Bench, run, trial
from verifier import logberg_verify

TRIALS = 10 * len(KINDS)


@pytest.mark.slow
def test_some_hundred_tamperings_are_found_each_at_its_place(tmp_path: Path) -> None:
    table = run(tmp_path, TRIALS, seed=7, worlds=3)
    assert len(table) == len(KINDS) == 32
    for kind, counts in table.items():
        assert counts["tried"] == counts["found"] == counts["at_place"] == 10, (kind.name, counts)
        assert counts["by_product"] == counts["asked_product"], (kind.name, counts)
    assert sum(counts["asked_product"] for counts in table.values()) > TRIALS / 2


def test_what_was_mended_is_as_it_was(tmp_path: Path) -> None:
    bench, dice = Bench(tmp_path, 1), random.Random(1)
    for kind in KINDS:
        trial(bench, kind, dice)
        found = sorted(path for path in bench.folder.rglob("*") if path.is_file())
        assert [str(path.relative_to(bench.folder)) for path in found] == sorted(bench.world.files)
        for path in found:
            frames = bench.world.files[str(path.relative_to(bench.folder))]
            assert path.read_bytes() == b"".join(frames)


@pytest.mark.parametrize(
    ("checks", "blind_to"),
    [
        ("crc", "byte flipped in a segment"),
        ("format", "newer format with right crc"),
        ("chain", "batch edited with right crc"),
        ("epoch", "time or epoch set back"),
        ("time", "time or epoch set back"),
        ("offset", "base offset changed"),
        ("header gap", "segment taken from another log of the cluster"),
        ("gap", "segment removed from the middle"),
        ("head", "last batch edited with right crc"),
        ("differs", "chain written anew and replicas there"),
        ("truncated", "tail cut within a batch"),
        ("name", "checkpoint of another moment under this name"),
        ("state", "checkpoint with other records and right digest"),
        ("digest", "checkpoint forged in full and a digest known"),
    ],
)
def test_without_a_check_tampering_is_not_found_at_its_place(
    checks: str, blind_to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the trials do ask for each of the checks."""
    need, verify = logberg_verify.need, logberg_verify.verify

    def blind_need(right: bool, kind: str, *rest: Any) -> None:
        need(right or kind in checks.split(), kind, *rest)

    def blind_verify(*arguments: Any) -> logberg_verify.Report:
        report = verify(*arguments)
        return report._replace(
            findings=[bad for bad in report.findings if bad.kind not in checks.split()]
        )

    monkeypatch.setattr(logberg_verify, "need", blind_need)
    monkeypatch.setattr("tests.verifier.tamper.verify", blind_verify)
    (kind,) = (kind for kind in KINDS if kind.name == blind_to)
    bench, dice = Bench(tmp_path, 2), random.Random(3)
    assert not all(trial(bench, kind, dice).at_place for _ in range(12))
