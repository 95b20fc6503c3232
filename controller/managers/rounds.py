"""Divides a request about many partitions into rounds, each of them a decision of its own.

Kafka promises atomicity for each partition of such a request only. Other decisions come between two
rounds, so a large request makes nobody wait. Every state between two rounds is valid. If the leader
fails in between, the rest of the partitions stay as they were. What the rounds answered is in the
log, so the same request, sent again, does the rest and gets the answer to all of it.

Rule: deciding changes nothing here. How far the request is comes from the log (`resume`).
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from controller.managers.sweep import ROUND
from controller.result import ControllerResult, RoundAnswer
from metadata.errors import LogbergError
from metadata.messages import ErrorReply, error_reply
from metadata.records import PartitionChangeRecord

_STEP = 64
Working = Generator[None, None, ControllerResult]
W = TypeVar("W")
R = TypeVar("R")


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    """What a round answered, as the log keeps it."""

    count: int
    """Partitions that the round decided about, in the order of the request."""
    errors: dict[int, ErrorReply]
    """By their number in the round. The other partitions have no error."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Answer).decode


class Rounds(Generic[W, R]):
    """How far the rounds of one request are. `W`: what is wanted; `R`: what became of it."""

    def __init__(
        self,
        wanted: Sequence[W],
        result: Callable[[W, ErrorReply | None], R],
        *,
        at_once: bool = False,
    ) -> None:
        """`at_once`: only one round, as a dry run shows it."""
        self._wanted = wanted
        self._result = result
        self._at_most = len(wanted) if at_once else ROUND
        self._answers: list[_Answer] = []
        self._done = 0

    @property
    def number(self) -> int:
        """How many rounds are in the log."""
        return len(self._answers)

    @property
    def progress(self) -> tuple[int, int]:
        """How many partitions are decided in the log, of how many."""
        return self._done, len(self._wanted)

    def resume(self, answer: bytes) -> None:
        """Take over what the next round answered, from the log."""
        known = _decode(answer)
        self._answers.append(known)
        self._done += known.count

    def earlier(self) -> Iterator[R]:
        """Yield the results of the rounds in the log."""
        wanted = iter(self._wanted)
        for answer in self._answers:
            for number in range(answer.count):
                yield self._result(next(wanted), answer.errors.get(number))

    def next(
        self,
        change: Callable[[W], PartitionChangeRecord | None],
        reply: Callable[[tuple[R, ...]], msgspec.Struct],
    ) -> Working:
        """Decide about the next partitions. `reply` gets the results of the last round.

        `change` raises LogbergError for a partition that is refused. If the request is about only
        one, the error is raised.
        """
        end = min(self._done + self._at_most, len(self._wanted))
        records: list[PartitionChangeRecord] = []
        results: list[R] = []
        errors: dict[int, ErrorReply] = {}
        for start in range(self._done, end, _STEP):
            if start > self._done:
                yield
            for wanted in self._wanted[start : min(start + _STEP, end)]:
                error = None
                try:
                    record = change(wanted)
                except LogbergError as refused:
                    if len(self._wanted) == 1:
                        raise
                    record = None
                    error = errors[len(results)] = error_reply(refused)
                if record is not None:
                    records.append(record)
                results.append(self._result(wanted, error))
        if end == len(self._wanted):
            return ControllerResult(records, reply(tuple(results)))
        answer = RoundAnswer(self.number, _encode(_Answer(len(results), errors)))
        return ControllerResult(records, unfinished=True, round_answer=answer)
