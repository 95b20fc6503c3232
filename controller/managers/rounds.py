"""Divides a request about many partitions into rounds, each of them a decision of its own.

Kafka promises atomicity for each partition of such a request only. Other decisions come between two
rounds, so a large request makes nobody wait. Every state between two rounds is valid. If the leader
fails in between, the rest of the partitions stay as they were. What the rounds answered is in the
log, so the same request, sent again, does the rest and gets the answer to all of it.
"""

from collections.abc import Callable, Generator, Sequence
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


class Rounds(Generic[W, R]):
    """How far the rounds of one request are. `W`: what is wanted; `R`: what became of it."""

    def __init__(
        self,
        wanted: Sequence[W],
        result: Callable[[W, ErrorReply | None], R],
        results: type[R],
        *,
        at_once: bool = False,
    ) -> None:
        """`results` is what `result` returns. `at_once`: only one round, as a dry run shows it."""
        self._wanted = wanted
        self._result = result
        self._at_most = len(wanted) if at_once else ROUND
        self._done: list[R] = []
        self._decoder = msgspec.msgpack.Decoder(tuple[results, ...])  # type: ignore[valid-type]
        self.number = 0
        """How many rounds were decided here, or are in the log."""

    def resume(self, answer: bytes) -> None:
        """Take over what the next round answered, from the log."""
        self._done += self._decoder.decode(answer)
        self.number += 1

    def next(
        self,
        change: Callable[[W], PartitionChangeRecord | None],
        reply: Callable[[tuple[R, ...]], msgspec.Struct],
    ) -> Working:
        """Decide about the next partitions. The last round has the reply.

        `change` raises LogbergError for a partition that is refused. If the request is about only
        one, the error is raised.
        """
        start = len(self._done)
        records: list[PartitionChangeRecord] = []
        for number, wanted in enumerate(self._wanted[start : start + self._at_most], 1):
            error = None
            try:
                record = change(wanted)
            except LogbergError as refused:
                if len(self._wanted) == 1:
                    raise
                record, error = None, error_reply(refused)
            if record is not None:
                records.append(record)
            self._done.append(self._result(wanted, error))
            if number % _STEP == 0:
                yield
        if len(self._done) < len(self._wanted):
            answer = RoundAnswer(self.number, msgspec.msgpack.encode(self._done[start:]))
            self.number += 1
            return ControllerResult(records, unfinished=True, round_answer=answer)
        return ControllerResult(records, reply(tuple(self._done)))
