"""The simulated world: one clock and one heap of events for all nodes, from a seed.

Rule: events run one at a time, ordered by time and then by when they were scheduled. Time advances
only between events. Every random choice comes from `World.random`, so the seed alone determines a
run. After every event the hooks run; they check the invariants.

Time is in whole microseconds, because a sum of floats depends on the order of summing.
"""

import hashlib
import heapq
import random
import zlib
from collections import deque
from collections.abc import Callable
from typing import Protocol

from runtime.simulated.machine import Machine

US = 1_000_000
"""Microseconds in a second."""
WALL_START_MS = 1_800_000_000_000
"""Wall time at the start of every run: January 2027."""
EVENTS_AT_ONE_INSTANT_MAX = 100_000
_TRACE_LENGTH = 300
_MASK = (1 << 64) - 1
_NEVER = -1


class ProcessKilledError(BaseException):
    """Ends the code of a process that was killed in the middle of an event.

    It is no `Exception`, so that an `except Exception` of a core doesn't catch it.
    """


class SimulationFailedError(Exception):
    """A node or a check raised an exception; the message says where and when."""

    def __init__(self, message: str, seed: int, node_id: int | None) -> None:
        super().__init__(message)
        self.seed = seed
        self.node_id = node_id


class Process(Protocol):
    """The part of `SimulatedProcess` that the world and the network use."""

    world: "World"
    node_id: int
    machine: Machine
    alive: bool
    waiting: "deque[ScheduledEvent] | None"

    def schedule(self, delay_us: int, callback: Callable[[], None], label: str) -> "ScheduledEvent":
        """Call back in this process, `delay_us` microseconds of the world from now."""


class ScheduledEvent:
    """A callback that is scheduled. It is also the `Timer` that a core gets."""

    __slots__ = ("callback", "due_local_us", "label", "process", "sequence")

    def __init__(self, callback: Callable[[], None], process: Process | None, label: str) -> None:
        self.callback: Callable[[], None] | None = callback
        self.process = process
        self.label = label
        self.sequence = 0
        self.due_local_us = _NEVER
        """For timers: when it is due, on the machine's monotonic clock."""

    def cancel(self) -> None:
        """Don't call back. If it has happened already, do nothing."""
        self.callback = None


AfterEvent = Callable[[Process | None], None]
OnException = Callable[[Process, Exception], bool]


class World:
    """The time, the order of events and the randomness of one simulated run."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now_us = 0
        self.executed = 0
        """The number of events that have happened."""
        self.current: Process | None = None
        """The process whose code is running; None between events and in events of no process."""
        self.on_exception: OnException | None = None
        """Called with an exception of a node's callback. True: the exception was expected."""
        self._heap: list[tuple[int, int, ScheduledEvent]] = []
        self._sequence = 0
        self._streams: dict[str, random.Random] = {}
        self._machines: dict[int, Machine] = {}
        self._hooks: list[AfterEvent] = []
        self._digest = zlib.crc32(str(seed).encode())
        self._label_codes: dict[str, int] = {}
        self._trace: deque[tuple[int, int, str, object]] = deque(maxlen=_TRACE_LENGTH)
        self._instant_us = 0
        self._at_this_instant = 0

    @property
    def now(self) -> float:
        """Seconds since the run began. No node sees this time."""
        return self.now_us / US

    def random(self, name: str) -> random.Random:
        """Return the random stream called `name`. It depends only on the seed and the name.

        So new code with a stream of its own doesn't change what other code draws.
        """
        stream = self._streams.get(name)
        if stream is None:
            digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
            stream = self._streams[name] = random.Random(int.from_bytes(digest, "big"))
        return stream

    def machine(self, node_id: int) -> Machine:
        """Return the machine of node `node_id`. It outlives the node's processes."""
        machine = self._machines.get(node_id)
        if machine is None:
            machine = self._machines[node_id] = Machine(self, node_id)
        return machine

    def after_event(self, hook: AfterEvent) -> None:
        """Call `hook` after every event, with the event's process (None: it had none).

        An exception of a hook fails the run.
        """
        self._hooks.append(hook)

    def schedule(
        self,
        delay_us: int,
        callback: Callable[[], None],
        process: Process | None = None,
        label: str = "event",
    ) -> ScheduledEvent:
        """Call back `delay_us` microseconds from now, in `process` if one is given."""
        event = ScheduledEvent(callback, process, label)
        self.push(event, self.now_us + max(delay_us, 0))
        return event

    def push(self, event: ScheduledEvent, time_us: int) -> None:
        """Schedule an event at a time. This replaces an earlier time of the same event."""
        self._sequence = event.sequence = self._sequence + 1
        heapq.heappush(self._heap, (time_us, self._sequence, event))

    def move_timers(self, machine: Machine) -> None:
        """Reschedule a machine's timers for the new rate of its clock."""
        mine = [
            event
            for _, sequence, event in sorted(self._heap, key=lambda entry: entry[:2])
            if event.sequence == sequence
            and event.due_local_us != _NEVER
            and event.process is not None
            and event.process.machine is machine
        ]
        for event in mine:
            self.push(event, self.now_us + machine.true_us(event.due_local_us - machine.local_us()))

    def note(self, label: str, node_id: int, value: int = 0) -> None:
        """Add something that happened to the digest and the trace of the run."""
        self._mix(label, node_id, value)
        self._trace.append((self.now_us, node_id, label, value))

    def digest(self) -> str:
        """Return a digest of everything that has happened. Equal runs have equal digests."""
        return f"{self.executed}-{self._digest:016x}"

    def trace(self, last: int = 60) -> str:
        """Return the last events, one a line: seconds, node (-1: none), what happened."""
        lines = []
        for time_us, node_id, label, detail in list(self._trace)[-last:]:
            lines.append(f"{time_us / US:12.6f}  {node_id:4d}  {label} {_describe(detail)}")
        return "\n".join(lines)

    def run(self, events_max: int) -> bool:
        """Run until no event is left (True), or for `events_max` events (False)."""
        until = self.executed + events_max
        while self._heap and self.executed < until:
            self._step()
        return not self._heap

    def run_until(self, time: float, stop: Callable[[], bool] | None = None) -> bool:
        """Run to `time` seconds since the start, or until `stop` returns True after an event.

        Returns whether `stop` ended the run.
        """
        end_us = round(time * US)
        heap = self._heap
        if stop is not None and stop():
            return True
        while heap and heap[0][0] <= end_us:
            if self._step() and stop is not None and stop():
                return True
        self.now_us = max(self.now_us, end_us)
        return False

    def run_for(self, duration: float, stop: Callable[[], bool] | None = None) -> bool:
        """Run for `duration` seconds from now; see `run_until`."""
        return self.run_until(self.now + duration, stop)

    def execute(self, event: ScheduledEvent) -> None:
        """Let an event happen now."""
        callback = event.callback
        if callback is None:
            return
        event.callback = None
        process = event.process
        node_id = -1 if process is None else process.node_id
        self.executed += 1
        self._mix(event.label, node_id, 0)
        self._trace.append((self.now_us, node_id, event.label, callback))
        outer, self.current = self.current, process
        try:
            callback()
        except ProcessKilledError:
            if process is None or process.alive:
                raise
        except SimulationFailedError:
            raise
        except Exception as error:  # noqa: BLE001 - every defect of a core must fail the run
            self._judge_exception(process, error)
        finally:
            self.current = outer
        for hook in self._hooks:
            try:
                hook(process)
            except SimulationFailedError:
                raise
            except Exception as error:  # noqa: BLE001 - as above, of a check
                self.fail(f"a check failed: {error!r}", node_id, error)

    def fail(self, what: str, node_id: int | None, cause: BaseException | None = None) -> None:
        """End the run with an error that names seed, time and node, and has the trace."""
        where = "" if node_id is None or node_id < 0 else f" node {node_id}"
        raise SimulationFailedError(
            f"seed {self.seed} at {self.now:.6f} s{where}: {what}\n{self.trace()}",
            self.seed,
            node_id,
        ) from cause

    def _step(self) -> bool:
        time_us, sequence, event = heapq.heappop(self._heap)
        if event.callback is None or event.sequence != sequence:
            return False
        process = event.process
        if process is not None:
            if not process.alive:
                return False
            if process.waiting is not None:
                self.now_us = time_us
                process.waiting.append(event)
                return False
        if time_us != self._instant_us:
            self._instant_us = time_us
            self._at_this_instant = 0
        self.now_us = time_us
        self._at_this_instant += 1
        if self._at_this_instant > EVENTS_AT_ONE_INSTANT_MAX:
            node_id = None if process is None else process.node_id
            self.fail("time stands still: too many events at one instant", node_id)
        self.execute(event)
        return True

    def _judge_exception(self, process: Process | None, error: Exception) -> None:
        judge = self.on_exception
        if process is not None and judge is not None and judge(process, error):
            return
        self.fail(f"{error!r}", None if process is None else process.node_id, error)

    def _mix(self, label: str, node_id: int, value: int) -> None:
        code = self._label_codes.get(label)
        if code is None:
            code = self._label_codes[label] = zlib.crc32(label.encode())
        mixed = self._digest ^ (self.now_us << 8) ^ (code << 20) ^ node_id ^ (value << 3)
        self._digest = (mixed * 0x9E3779B97F4A7C15 ^ mixed >> 29) & _MASK


def _describe(detail: object) -> str:
    """Name a callback without its memory address, which would differ between runs."""
    if isinstance(detail, int):
        return str(detail)
    function = getattr(detail, "func", detail)
    return str(getattr(function, "__qualname__", type(function).__name__))
