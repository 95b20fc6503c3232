"""Runs long work in short slices, so that it never blocks the loop for long.

Rule: work that can take longer than a few milliseconds is a generator that yields often; it
runs in slices, and other due work runs between them. Pieces of work on one loop take turns: a pass
of the loop runs a slice of one of them. The state that the generator reads must be immutable, or
its owner must accept that it changes between slices.
"""

import weakref
from collections import deque
from collections.abc import Callable, Generator

from runtime.clock import Clock

SLICE_S = 0.005


class LoopShare:
    """Limits how much of one pass of the loop many short pieces of work may take together.

    Each piece is short, but a thousand requests may arrive together. Call `spent` before each
    piece. If it returns True, stop; `on_next` is called in a later pass.
    """

    def __init__(self, clock: Clock, on_next: Callable[[], None], share_s: float = SLICE_S) -> None:
        self._clock = clock
        self._on_next = on_next
        self._share_s = share_s
        self._until: float | None = None
        self._stopped = False

    def spent(self) -> bool:
        """Tell whether the share of this pass is used up."""
        now = self._clock.monotonic()
        if self._until is None:
            self._until = now + self._share_s
            self._clock.call_soon(self._next_pass)
        elif now >= self._until:
            self._stopped = True
        return self._stopped

    def _next_pass(self) -> None:
        self._until = None
        if self._stopped:
            self._stopped = False
            self._on_next()


def run_in_slices(
    clock: Clock, work: Generator[None, None, None], on_done: Callable[[], None]
) -> Callable[[], None]:
    """Run `work` to its end in slices of at most `SLICE_S`, then call `on_done`.

    Returns a function that cancels the work. An exception of `work` reaches the loop.
    """
    slices = SlicedWork(clock, work, on_done)
    slices.begin()
    return slices.cancel


def in_turn(clock: Clock, run: Callable[[], None], name: str) -> None:
    """Call `run` once, when the long work that waits already has had its turn.

    For work that has an order of its own: `run` must return after `SLICE_S`, and may ask for the
    next turn. `name` is for diagnosis.
    """
    _turns_of(clock).add(_OneTurn(run, name))


def _turns_of(clock: Clock) -> "SliceTurns":
    turns = _TURNS.get(clock)
    if turns is None:
        turns = _TURNS[clock] = SliceTurns(clock)
    return turns


class SliceTurns:
    """The pieces of long work of one loop, in the order of their turns.

    Without turns, a checkpoint, a large change and the release of an old image would each take
    `SLICE_S` of the same pass.
    """

    def __init__(self, clock: Clock) -> None:
        # The table of turns refers to the clock weakly, so its values must not keep it alive.
        self._clock = weakref.ref(clock)
        self._waiting: deque[SlicedWork | _OneTurn] = deque()
        self._scheduled = False
        self.name = ""
        """The name of the work whose turn it is, or was last; for diagnosis."""

    def add(self, work: "SlicedWork | _OneTurn") -> None:
        """Give `work` its turn after the work that waits already."""
        self._waiting.append(work)
        self._schedule()

    def _schedule(self) -> None:
        clock = self._clock()
        if self._waiting and not self._scheduled and clock is not None:
            self._scheduled = True
            clock.call_soon(self.take_turn)

    def take_turn(self) -> None:
        """Run a slice of the next work."""
        self._scheduled = False
        work = self._next()
        if work is None:
            return
        self.name = work.name
        try:
            if work.step():
                self._waiting.append(work)
        finally:
            self._schedule()

    def _next(self) -> "SlicedWork | _OneTurn | None":
        while self._waiting:
            work = self._waiting.popleft()
            if not work.cancelled:
                return work
        return None


_TURNS: "weakref.WeakKeyDictionary[Clock, SliceTurns]" = weakref.WeakKeyDictionary()


class _OneTurn:
    """A single turn of work that keeps its own order."""

    cancelled = False

    def __init__(self, run: Callable[[], None], name: str) -> None:
        self._run = run
        self.name = name

    def step(self) -> bool:
        """Run. It needs no other turn."""
        self._run()
        return False


class SlicedWork:
    """One piece of long work, between its slices."""

    def __init__(
        self, clock: Clock, work: Generator[None, None, None], on_done: Callable[[], None]
    ) -> None:
        self._clock = clock
        self._work = work
        self._on_done = on_done
        self._stepping = False
        self._has_turn = False
        self._paused = False
        self._ended = False
        self.cancelled = False

    @property
    def name(self) -> str:
        """What the work is, for diagnosis."""
        return str(getattr(self._work, "__qualname__", self._work))

    def begin(self, *, at_once: bool = False) -> None:
        """Take turns with other long work from now on.

        `at_once`: run the first slice before this method returns, so that short work takes no
        further pass of the loop. Then `on_done` may be called before this method returns, too.
        """
        if at_once and not self.step():
            return
        self._has_turn = True
        _turns_of(self._clock).add(self)

    def pause(self) -> None:
        """Take no turn until `resume`. Has no effect after the end.

        Work that pauses itself goes on up to its next yield.
        """
        self._paused = True

    def resume(self) -> None:
        """Take turns again."""
        if self._paused and not self._has_turn and not self._ended:
            self._has_turn = True
            _turns_of(self._clock).add(self)
        self._paused = False

    def cancel(self) -> None:
        """Run no further slice. Work that cancels itself is closed after its next yield."""
        self.cancelled = True
        if not self._stepping:
            self._work.close()

    def step(self) -> bool:
        """Run for one slice. Tells whether the work needs another turn."""
        if self._paused:
            self._has_turn = False
            return False
        self._stepping = True
        try:
            finished = self._run_slice()
        finally:
            self._stepping = False
        if self.cancelled:
            # The work cancelled itself.
            self._work.close()
            return False
        self._ended = finished
        if finished:
            self._on_done()
        return not finished

    def _run_slice(self) -> bool:
        """Run the work for one slice; tell whether it is done."""
        until = self._clock.monotonic() + SLICE_S
        return not any(
            self.cancelled or self._paused or self._clock.monotonic() >= until for _ in self._work
        )
