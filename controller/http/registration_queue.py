"""Admits registrations of brokers, a bounded number at a time.

A registration costs a commit and goes before the requests of users. When a rack or a cluster gets
its power back, thousands of brokers register at one moment. If all were let in, fencings and
unfencings would wait behind them for seconds, and agents would give up and ask again.

Rule: beyond a bound, a registration is refused with THROTTLED and the time of its turn. Turns are
given out at the pace at which registrations are done, so those who come back find room and nobody
asks in vain each second. A process has one registration under way: when it asks again, the newer
request gets the answer.
"""

from collections import deque
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from metadata.errors import ErrorCode, LogbergError
from runtime.clock import Clock

UNDER_WAY_MAX: Final = 128
"""Some 0.1 s of decisions."""
TURN_MAX_S: Final = 10.0
"""The latest turn. The pace of registrations far behind it is not known."""
_TURN_MIN_S: Final = 0.05
_PACE_S: Final = 0.001
"""Seconds for one registration, before the pace is known."""
_PACE_MAX_S: Final = 0.05
_PACE_OVER: Final = 64
"""The pace is that of so many registrations."""
_AHEAD: Final = 0.75
"""Turns are given out faster than the pace, since agents come back some time after theirs."""

T = TypeVar("T")


class RegistrationQueue(Generic[T]):
    """The registrations under way, each with who waits for its answer, and the turns of others."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._under_way: dict[Hashable, T] = {}
        self._done_at: deque[float] = deque(maxlen=_PACE_OVER)
        self._next_turn = 0.0

    def __len__(self) -> int:
        return len(self._under_way)

    def take_over(self, registration: Hashable, waiting: T) -> T | None:
        """If this registration is under way, let `waiting` get its answer. Returns who waited."""
        earlier = self._under_way.get(registration)
        if earlier is not None:
            self._under_way[registration] = waiting
        return earlier

    def refusal(self) -> LogbergError | None:
        """Return why no registration may begin now, and when to come back; None if one may."""
        if len(self._under_way) < UNDER_WAY_MAX:
            return None
        return LogbergError(
            ErrorCode.THROTTLED,
            f"{UNDER_WAY_MAX} registrations are under way; register after retryAfterMs",
            retry_after_ms=int(self._turn_s() * 1000),
        )

    def begin(self, registration: Hashable, waiting: T) -> None:
        """A registration is under way now."""
        self._under_way[registration] = waiting

    def end(self, registration: Hashable) -> T:
        """A registration is decided and committed, or refused. Returns who waits for its answer."""
        self._done_at.append(self._clock.monotonic())
        return self._under_way.pop(registration)

    def _turn_s(self) -> float:
        """Give out the next turn. Returns seconds from now."""
        now = self._clock.monotonic()
        self._next_turn = max(self._next_turn, now) + self._pace_s() * _AHEAD
        self._next_turn = min(self._next_turn, now + TURN_MAX_S)
        return max(_TURN_MIN_S, self._next_turn - now)

    def _pace_s(self) -> float:
        done = self._done_at
        if len(done) < _PACE_OVER:
            return _PACE_S
        return min((done[-1] - done[0]) / (len(done) - 1), _PACE_MAX_S)
