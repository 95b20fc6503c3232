"""Request ids, by which the controllers recognise a repeated change.

Rule: an id is a UUIDv7, so it holds the time at which it was drawn. The controllers refuse an id
from their future, and one that is so old that they have forgotten it. A client's clock may be
wrong, so once a controller has said its time, ids are drawn by that.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from metadata.uuids import UUID7_RANDOM_BITS, UuidError, parse_uuid, uuid7, uuid7_time_ms, uuid_text
from runtime.clock import Clock
from runtime.randomness import Random

NAMES_MAX: Final = 1000
"""How many of the callers' own request ids are remembered."""
_AHEAD_MS: Final = 24 * 60 * 60 * 1000
"""A caller's text that would be a UUIDv7 of a later time than this from now is no UUIDv7."""


@dataclass(frozen=True, slots=True)
class RequestId:
    """The id of one change."""

    text: str
    name: str | None = None
    """The caller's own id for it; None: the caller has none, or it is a UUIDv7 and stands above."""
    fresh: bool = False
    """Drawn just now, so no controller has seen it before this call."""


class RequestIds:
    """Draws the request ids of one client."""

    def __init__(self, clock: Clock, dice: Random) -> None:
        self._clock = clock
        self._dice = dice
        self._behind_ms = 0
        """How far our wall clock is behind the controllers'."""
        self._names: OrderedDict[str, str] = OrderedDict()

    def of(self, name: str | None) -> RequestId:
        """Return the id for a caller's own one, the same for the same; a new one for None.

        A caller's UUIDv7 stays as it is, so it also counts in another process. Any other text
        counts only in this client, for the last `NAMES_MAX` texts.
        """
        if name is None:
            return RequestId(self._drawn(), fresh=True)
        if name in self._names:
            return RequestId(self._names[name], name)
        if self._is_uuid7(name):
            return RequestId(name)
        return self._remembered(name)

    def again(self, refused: RequestId, controllers_ms: int) -> RequestId:
        """Draw an id anew, because the refused one's time was wrong. It must be `fresh`."""
        self._behind_ms = controllers_ms - self._clock.wall_ms()
        again = self.of(None) if refused.name is None else self._remembered(refused.name)
        return RequestId(again.text, again.name)

    def _remembered(self, name: str) -> RequestId:
        drawn = self._names[name] = self._drawn()
        while len(self._names) > NAMES_MAX:
            self._names.popitem(last=False)
        return RequestId(drawn, name, fresh=True)

    def _drawn(self) -> str:
        now_ms = max(0, self._clock.wall_ms() + self._behind_ms)
        return uuid_text(uuid7(now_ms, self._dice.getrandbits(UUID7_RANDOM_BITS)))

    def _is_uuid7(self, text: str) -> bool:
        """Whether it is one; most random texts of this length aren't."""
        try:
            drawn_ms = uuid7_time_ms(parse_uuid(text))
        except (UuidError, ValueError):
            return False
        return drawn_ms <= self._clock.wall_ms() + self._behind_ms + _AHEAD_MS
