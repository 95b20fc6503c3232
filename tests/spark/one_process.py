"""The pipeline in one process, without Spark: the same tasks, one after the other.

Rule: only what Spark does is replaced: it runs tasks, and hands their messages over by part.
"""

from pathlib import Path
from typing import Any

import pytest

from audit.spark.folds.messages import DRIVER, Message
from audit.spark.folds.slices import sliced
from audit.spark.pipeline import micro_batch
from audit.spark.pipeline.carried_store import Carried
from audit.spark.pipeline.micro_batch import BatchResult, MicroBatch
from audit.spark.pipeline.pipeline import run_pipeline


class _Context:
    defaultParallelism = 2  # noqa: N815 - Spark's

    def setJobDescription(self, words: str | None) -> None:
        pass


class _Session:
    sparkContext = _Context()  # noqa: N815 - Spark's


def _run(_spark: object, work: MicroBatch) -> BatchResult:
    found: list[Message] = []
    for number, piece in enumerate(work.pieces):
        found += sliced(piece, number, work.parts, work.place, f"piece-{number}")
    results: list[Message] = []
    for part in (DRIVER, *range(work.parts)):
        # What comes from other tasks comes in any order.
        mine = [message for message in reversed(found) if message.part == part]
        results += micro_batch.folded(work, iter(mine))
    return micro_batch.result_of(results)


def take_in(log: Path, out: Path | str, **options: Any) -> Carried:
    """Run the pipeline."""
    session: Any = _Session()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(micro_batch, "run", _run)
        return run_pipeline(session, str(log), out, **options)
