"""Leaders are killed under load: everything acknowledged is in every log once, at its offset.

Half a dozen kills here; hundreds by `python -m tests.kills`.
"""

import asyncio
from pathlib import Path

import pytest

from tests.kills.__main__ import Run, in_office

pytestmark = pytest.mark.process

COUNT = 6


def test_what_clients_were_told_outlives_every_leader_that_told_it(tmp_path: Path) -> None:
    run = Run(tmp_path / "cluster", COUNT, minutes=2.0, seed=1)
    verdict, ledger = asyncio.run(run.run())
    assert verdict.problems == []
    ended = in_office(run.kills, ledger)
    assert {kill.kind for kill in ended} == {"kill", "paused"}
    # Each kill was of a leader that had told clients something, else it shows nothing.
    told_by = {one.epoch for one in run.load.acknowledged}
    assert {kill.epoch for kill in ended} <= told_by
    assert len(told_by) > COUNT
