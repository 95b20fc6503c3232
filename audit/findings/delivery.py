"""Hands findings to sinks, each at least once.

Rule: a finding is in a sink's spool on disk before anybody tries to hand it over. It leaves the
spool when the sink has taken it; one that is refused for good goes to a file of refused ones. So
after a crash a finding may come twice, with the same id, but none is lost. A sink that is down
costs the others nothing, and never raises: its trouble is told in a sentence, once each time that
it begins.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from audit.findings.finding import Finding
from runtime.disk.interface import Disk
from runtime.notices.webhook import NotTakenError

_POSITION: Final = "position.json"
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 300.0


class FindingSink(Protocol):
    """Where findings go. `name` is a word, unique among the sinks, for file names."""

    name: str

    def send(self, finding: dict[str, Any]) -> None:
        """Hand over a finding (`Finding.as_json`), once. Raises NotTakenError."""


class _Queue:
    """One sink, and what it has not taken yet."""

    def __init__(self, sink: FindingSink, spool: Disk) -> None:
        self.sink = sink
        self._spool = spool
        self._file = f"{sink.name}.waiting.jsonl"
        self.waiting: list[bytes] = list(_lines(spool, self._file))
        self.pause_s = 0.0
        self.next_s = 0.0
        """By the monotonic clock: no try before."""

    def put(self, lines: Sequence[bytes]) -> None:
        """Keep findings. Raises OSError; even then they are kept in memory."""
        self.waiting += lines
        _append(self._spool, self._file, lines)

    def refuse(self, line: bytes) -> None:
        """Put a finding aside that the sink will never take. Raises OSError."""
        _append(self._spool, f"{self.sink.name}.refused.jsonl", [line])

    def taken(self, count: int) -> None:
        """Forget the first ones. Raises OSError."""
        del self.waiting[:count]
        self._spool.replace(self._file, b"".join(self.waiting))


class FindingDelivery:
    """Sinks, and the spool in which findings wait for them."""

    def __init__(
        self,
        sinks: Sequence[FindingSink],
        spool: Disk,
        *,
        now_s: Callable[[], float],
        tell: Callable[[str], None],
    ) -> None:
        """`now_s`: a monotonic clock. `tell` gets a sentence about each trouble.

        Raises OSError if the spool can't be read.
        """
        self._spool = spool
        spool.make_folder("")
        self._queues = [_Queue(sink, spool) for sink in sinks]
        self._now_s, self._tell = now_s, tell
        self.position = _position(spool)
        """The offset up to which findings were given, by this run or an earlier one; None: none."""

    @property
    def waiting(self) -> int:
        """How many deliveries are still to be made."""
        return sum(len(queue.waiting) for queue in self._queues)

    def give(self, findings: Sequence[Finding], position: int) -> None:
        """Take findings of the log up to an offset, and try to hand over all that waits."""
        lines = [msgspec.json.encode(one.as_json()) + b"\n" for one in findings]
        if lines:
            for queue in self._queues:
                self._try(lambda queue=queue: queue.put(lines), "the spool")  # type: ignore[misc]
            self.keep_position(position)
        self.retry()

    def keep_position(self, position: int) -> None:
        """Write down up to where findings were given."""
        if position != self.position:
            self.position = position
            data = msgspec.json.encode({"position": position})
            self._try(lambda: self._spool.replace(_POSITION, data), "the spool")

    def retry(self) -> None:
        """Hand over what waits, to each sink whose pause is over."""
        for queue in self._queues:
            if queue.waiting and self._now_s() >= queue.next_s:
                self._hand_over(queue)

    def _hand_over(self, queue: _Queue) -> None:
        done = 0
        try:
            for line in queue.waiting:
                self._send(queue, line)
                done += 1
            queue.pause_s = queue.next_s = 0.0
        except NotTakenError as error:
            if not queue.pause_s:
                left = len(queue.waiting) - done
                self._tell(f"{queue.sink.name} doesn't take findings, {left} wait: {error}")
            queue.pause_s = min(max(_FIRST_PAUSE_S, 2 * queue.pause_s), _LONGEST_PAUSE_S)
            queue.next_s = self._now_s() + queue.pause_s
        if done:
            self._try(lambda: queue.taken(done), "the spool")

    def _send(self, queue: _Queue, line: bytes) -> None:
        """Hand over one finding; put it aside if it is refused for good. Raises NotTakenError."""
        finding = msgspec.json.decode(line)
        try:
            queue.sink.send(finding)
        except NotTakenError as error:
            if not error.for_good:
                raise
            self._tell(f"{queue.sink.name} refused finding {finding['id']} for good: {error}")
            self._try(lambda: queue.refuse(line), "the spool")

    def _try(self, act: Callable[[], None], what: str) -> None:
        try:
            act()
        except OSError as error:
            self._tell(f"{what} can't be written, so findings may be lost by a crash: {error}")


def _append(disk: Disk, name: str, lines: Sequence[bytes]) -> None:
    file = disk.open(name)
    try:
        file.append(b"".join(lines))
        file.sync()
    finally:
        file.close()


def _lines(disk: Disk, name: str) -> Iterator[bytes]:
    """Yield the whole lines of a file. A last one without an end was cut off by a crash."""
    if disk.exists(name):
        for line in disk.read(name).splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield line


def _position(spool: Disk) -> int | None:
    if not spool.exists(_POSITION):
        return None
    try:
        return int(msgspec.json.decode(spool.read(_POSITION))["position"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return None
