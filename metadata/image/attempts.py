"""The reports of attempts that the log has, by the life of the controller that counted them.

Rule: a report is written once. A controller sends it again until it sees it here, and the leader
writes none that is here. The image keeps the last record of each life, and the newest
`LIVES_KEPT` lives of a controller. Only controllers hold it.
"""

from collections.abc import Generator
from typing import Final

import msgspec

from metadata.buckets import BucketMap, mix_bytes
from metadata.image.overlay import Overlay
from metadata.image.table import ImageTable, itself, replays
from metadata.records import AttemptsRecord

LIVES_KEPT: Final = 8
"""A report that is late by so many starts of its controller could be written twice."""


class AttemptsImage(msgspec.Struct, frozen=True):
    """The last record of each life."""

    lives: BucketMap[bytes, AttemptsRecord]

    def has(self, life: bytes, number: int) -> bool:
        """Return whether a report is in the log."""
        last = self.lives.get(life)
        return last is not None and last.number >= number


EMPTY_ATTEMPTS = AttemptsImage(BucketMap(mix_bytes))


class AttemptsDelta:
    """Replays the records of attempts."""

    def __init__(self, image: AttemptsImage) -> None:
        self._image = image
        self.lives = Overlay(image.lives)

    def apply_in_steps(self) -> Generator[None, None, AttemptsImage]:
        return AttemptsImage((yield from self.lives.apply_in_steps()))

    @replays(AttemptsRecord)
    def note(self, record: AttemptsRecord, offset: int) -> None:
        """Keep the newest record of a life, and drop its controller's oldest life."""
        if record.life not in self.lives:
            self._make_room(record.controller_id)
        self.lives.set(record.life, record)

    def _make_room(self, controller_id: int) -> None:
        lives = {**dict(self._image.lives.unordered_items()), **self.lives.changed}
        known = sorted(
            (record.last_ms, life)
            for life, record in lives.items()
            if record is not None and record.controller_id == controller_id
        )
        for _, life in known[: max(0, len(known) - LIVES_KEPT + 1)]:
            self.lives.remove(life)


TABLES: Final = (
    ImageTable(
        "attempts", "attempts", "lives", itself, "attempts", ("life",), controllers_only=True
    ),
)
