"""Frees large old data bit by bit.

When the last reference to a large structure goes, Python frees all of it at once, and the event
loop stands still. So its owner hands the parts (pages) in here, and they are dropped a few at a
time.

Readers may still use a structure that was published. Its pages are kept for half a second, until
those have let go. Pages without readers are dropped at once.
"""

from collections.abc import Generator
from typing import Any, Protocol

from runtime.clock import Clock
from runtime.loop.slices import run_in_slices

_AFTER_S = 0.5
"""Time for readers to let go of a published image."""
_PAGES = 8
"""Pages dropped in one step: some hundred dicts."""


class Replaced(Protocol):
    """The pages of a structure that another has replaced."""

    @property
    def published(self) -> list[Any]:
        """Readers may still use these."""

    @property
    def unread(self) -> list[Any]:
        """Nobody uses these any more."""


class Retirement:
    """Keeps the pages of old data, and drops them in slices."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[Any] = []
        self._dropping: list[Any] = []
        self._drops = False

    def __len__(self) -> int:
        """Pages that are still kept."""
        return len(self._waiting) + len(self._dropping)

    def replaced(self, pages: Replaced) -> None:
        """Drop these pages: the unread ones now, the published ones later."""
        self.released(pages.unread)
        if pages.published and not self._waiting:
            self._clock.call_later(_AFTER_S, self._waited)
        self._waiting += pages.published

    def released(self, pages: list[Any]) -> None:
        """Drop pages that nobody uses any more."""
        self._dropping += pages
        self._begin()

    def _waited(self) -> None:
        self._dropping += self._waiting
        self._waiting = []
        self._begin()

    def _begin(self) -> None:
        if self._dropping and not self._drops:
            self._drops = True
            run_in_slices(self._clock, self._drop(), self._done)

    def _drop(self) -> Generator[None, None, None]:
        while self._dropping:
            del self._dropping[-_PAGES:]
            yield

    def _done(self) -> None:
        self._drops = False
