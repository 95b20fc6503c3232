"""Decides what a controller's report of attempts writes: its records, once."""

from collections.abc import Sequence

from controller.result import ControllerResult
from metadata.image import MetadataImage
from metadata.records import AttemptsRecord


def report_attempts(image: MetadataImage, records: Sequence[AttemptsRecord]) -> ControllerResult:
    """Return the records of one report, or none if the log has them."""
    if image.attempts.has(records[0].life, records[0].number):
        return ControllerResult(())
    return ControllerResult(tuple(records))
