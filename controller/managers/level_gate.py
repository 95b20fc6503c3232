"""The gate: refuses a record whose feature level is not finalised.

Only the leader checks, once for each decision. A level that the same decision finalises counts for
the records behind it.
"""

from collections.abc import Generator, Mapping, Sequence

from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.record_levels import missing_level, needs_above
from metadata.records import FeatureLevelRecord, Record
from metadata.records.declaring import Need

_STEP = 1024
"""Records between two yields."""


class LevelGate:
    """Keeps which record types are not allowed at the last seen levels, which seldom change."""

    def __init__(self) -> None:
        self._features: object = None
        self._closed: Mapping[type[Record], tuple[Need, ...]] = {}

    def check(self, image: MetadataImage, records: Sequence[Record]) -> Generator[None, None, None]:
        """Raise LogbergError UNSUPPORTED_VERSION for a record whose level is not finalised."""
        if self._features is not image.features:
            self._closed = needs_above(dict(image.features.levels.items()))
            self._features = image.features
        closed = self._closed
        levels: dict[str, int] | None = None
        for number, record in enumerate(records, start=1):
            if isinstance(record, FeatureLevelRecord):
                levels = levels or dict(image.features.levels.items())
                levels[record.name] = record.feature_level
                closed = needs_above(levels)
            needs = closed.get(type(record))
            if needs is not None:
                why = missing_level(record, needs)
                if why:
                    raise LogbergError(ErrorCode.UNSUPPORTED_VERSION, why)
            if number % _STEP == 0:
                yield
