"""Makes answers in slices, and keeps those that clients ask for again and again.

Rule: an answer belongs to one image. When the image changes, all kept answers are dropped. Clients
that ask for the same while it is being made share one making, so a thousand clients that learn of a
new leader together cost one answer. The kept bytes are bounded.

A client gets an answer exactly once, also when making it fails.
"""

from collections.abc import Callable, Generator, Hashable
from typing import Final

from kafka_listener.wire.body_parts import Parts
from metadata.image import MetadataImage
from runtime.clock import Clock
from runtime.loop.slices import SlicedWork

KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
KEPT_MAX: Final = 1_000
Making = Generator[None, None, Parts]
OnMade = Callable[[Parts | Exception], None]


class SlicedAnswers:
    """The answers of one listener."""

    def __init__(self, clock: Clock, kept_bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._clock = clock
        self._kept_bytes_max = kept_bytes_max
        self._image: MetadataImage | None = None
        self._kept: dict[Hashable, Parts] = {}
        self._waiting: dict[Hashable, list[OnMade]] = {}
        self.kept_bytes = 0
        """How many bytes are kept at present."""
        self.made = 0
        """How many answers were made; the others came from the kept ones."""

    def give(
        self, image: MetadataImage, key: Hashable, make: Callable[[], Making], on_made: OnMade
    ) -> None:
        """Call `on_made` with the answer of this key, now or later; short ones come now.

        `make` makes the answer from `image`; equal keys must make equal answers.
        """
        self._follow(image)
        kept = self._kept.get(key)
        if kept is not None:
            on_made(kept)
            return
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(on_made)
            return
        self._waiting[key] = waiting = [on_made]
        self.made += 1

        def keep(body: Parts | Exception) -> None:
            # A newer image has its own list of those who wait.
            if self._image is image:
                del self._waiting[key]
                if not isinstance(body, Exception):
                    self._keep(key, body)
            for tell in waiting:
                tell(body)

        self.make(make(), keep)

    def make(self, making: Making, on_made: OnMade) -> None:
        """Make one answer that is not kept."""
        outcome: list[Parts | Exception] = []

        def work() -> Generator[None, None, None]:
            try:
                outcome.append((yield from making))
            except Exception as error:  # noqa: BLE001 - the client must get an answer
                outcome.append(error)

        SlicedWork(self._clock, work(), lambda: on_made(outcome[0])).begin(at_once=True)

    def _follow(self, image: MetadataImage) -> None:
        if image is not self._image:
            self._image, self._kept, self._waiting, self.kept_bytes = image, {}, {}, 0

    def _keep(self, key: Hashable, body: Parts) -> None:
        size = sum(map(len, body))
        fits = self.kept_bytes + size <= self._kept_bytes_max
        if fits and len(self._kept) < KEPT_MAX:
            self._kept[key] = body
            self.kept_bytes += size
