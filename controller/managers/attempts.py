"""Decides what a controller's report of attempts writes: its records, once."""

from collections.abc import Generator, Sequence

from controller.managers.address_sealing import AddressSealer
from controller.result import ControllerResult
from metadata.image import MetadataImage
from metadata.records import AttemptsRecord


def is_written(image: MetadataImage, records: Sequence[AttemptsRecord]) -> bool:
    """Return whether the log has a report."""
    return image.attempts.has(records[0].life, records[0].number)


def report_attempts(
    image: MetadataImage, records: Sequence[AttemptsRecord], sealer: AddressSealer | None = None
) -> ControllerResult | Generator[None, None, ControllerResult]:
    """Return the records of one report, or none if the log has them.

    `sealer`: seals the addresses.
    """
    if is_written(image, records):
        return ControllerResult(())
    return ControllerResult(tuple(records)) if sealer is None else sealer.of_report(image, records)
