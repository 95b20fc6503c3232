"""Writing a made-up log: operations become sealed, chained batches, as a controller makes them.

Rule: as in the controller, decisions are made one after another; one that is too large for a batch
is a transaction over many, an answered request leaves its outcome behind in its last batch, and
the epoch's first batch begins it.
"""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec

from audit.generated.dice import Dice
from audit.generated.facts import FACTS_PER_KIND, Fact
from audit.generated.people import Actor
from ledger.batch import Batch, BatchHeader, Provenance, seal
from ledger.chain import LogMark
from metadata.codec import encode_record, encode_records
from metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    Record,
    RequestOutcomeRecord,
)

_BATCH_TARGET_BYTES = 256 * 1024
"""As the controllers' proposer aims at."""
_SURELY_SMALL = 500
"""Records that can't be more than a batch."""


class Sealed(NamedTuple):
    """A batch, and its records as they were before they were encoded."""

    batch: Batch
    records: Sequence[Record]


class Written(NamedTuple):
    """Where an operation stands in the log."""

    base_offset: int
    end_offset: int
    time_ms: int
    """Of its first batch."""
    settled_base: int
    """Base offset of the batch that settled it: its last."""
    settled_ms: int


class Pen:
    """Seals batches; the newest wait in `sealed`."""

    def __init__(self, dice: Dice, cluster_id: str) -> None:
        self._dice = dice
        self.mark = LogMark.beginning(cluster_id)
        self.epoch = 1
        self.sealed: list[Sealed] = []
        self.batches = 0
        self.facts: list[Fact] = []
        self._told: Counter[str] = Counter()
        self._leaders: list[tuple[str, bool]] = []
        self._leaderless: dict[str, Written] = {}

    @property
    def offset(self) -> int:
        """Where the next record will stand."""
        return self.mark.log_end

    def write(
        self,
        time_ms: int,
        actor: Actor,
        operation: str,
        records: Sequence[Record],
        reason: str = "",
    ) -> Written:
        """Write what the cluster does itself; in a transaction if it is too large for a batch."""
        return self._write_all(time_ms, actor.does(operation, reason), records, answered=False)

    def answer(
        self,
        time_ms: int,
        actor: Actor,
        operation: str,
        records: Sequence[Record],
        reason: str = "",
        pieces: int = 1,
    ) -> Written:
        """Write what a request asks for, with its outcome; `pieces` over 1 make a transaction."""
        provenance = self._asked(time_ms, actor, operation, records, reason)
        return self._write_all(time_ms, provenance, records, answered=True, pieces=pieces)

    def begin_transaction(
        self,
        time_ms: int,
        actor: Actor,
        operation: str,
        records: Sequence[Record],
        reason: str,
        pieces: int,
    ) -> tuple[Written, Provenance]:
        """Write a transaction that doesn't end; whoever asked for it can still abort it."""
        provenance = self._asked(time_ms, actor, operation, records, reason)
        base, begun_ms = self.offset, max(time_ms, self.mark.timestamp_ms)
        for piece in _cut([BeginTransactionRecord(operation), *records], pieces):
            time_ms = self._seal(time_ms, provenance, piece) + 1
        return Written(base, self.offset, begun_ms, base, begun_ms), provenance

    def abort(self, time_ms: int, provenance: Provenance, reason: str) -> Written:
        """Discard the open transaction."""
        base = self.offset
        time_ms = self._seal(time_ms, provenance, [AbortTransactionRecord(reason)])
        return Written(base, self.offset, time_ms, base, time_ms)

    def tell(
        self,
        kind: str,
        subject: str,
        written: Written,
        principal: str,
        sentence: str = "",
        until: Written | None = None,
    ) -> None:
        """Note a fact that began in `written`, and ended in `until`."""
        self._told[kind] += 1
        if self._told[kind] <= FACTS_PER_KIND:
            self.facts.append(
                Fact(
                    kind,
                    subject,
                    written.base_offset,
                    until.end_offset if until else None,
                    written.time_ms,
                    until.settled_ms if until else None,
                    principal,
                    sentence,
                )
            )

    def leader_changed(self, subject: str, *, lost: bool) -> None:
        """Hear of a leader lost or found; the batch that says so is sealed next."""
        self._leaders.append((subject, lost))

    def finish(self) -> None:
        """No more will be written: what is leaderless stays so."""
        for subject, since in self._leaderless.items():
            self.tell("leaderless", subject, since, "")
        self._leaderless.clear()
        self.facts.sort(key=lambda fact: (fact.from_offset, fact.kind, fact.subject))

    def _asked(
        self,
        time_ms: int,
        actor: Actor,
        operation: str,
        records: Sequence[Record],
        reason: str,
    ) -> Provenance:
        request_id = self._dice.request_id(time_ms - self._dice.below(400))
        head = encode_record(records[0])
        digest = sha256(b"\0".join((operation.encode(), request_id, head))).digest()
        return actor.does(operation, reason, request_id, digest)

    def _write_all(
        self,
        time_ms: int,
        provenance: Provenance,
        records: Sequence[Record],
        *,
        answered: bool,
        pieces: int = 1,
    ) -> Written:
        base, begun_ms = self.offset, max(time_ms, self.mark.timestamp_ms)
        batches = _cut(records, pieces)
        many = len(batches) > 1
        if many:
            batches[0].insert(0, BeginTransactionRecord(provenance.operation))
        end = base + len(records) + 2 * many + answered
        for number, batch in enumerate(batches, 1):
            time_ms = max(time_ms, self.mark.timestamp_ms)
            if number == len(batches) and answered:
                batch.append(self._outcome(provenance, end, time_ms))
            if number == len(batches) and many:
                batch.append(EndTransactionRecord())
            time_ms = self._seal(time_ms, provenance, batch)
        assert self.offset == end
        settled_base = self.sealed[-1].batch.header.base_offset
        written = Written(base, end, begun_ms, settled_base, time_ms)
        self._note_leaders(written)
        return written

    def _outcome(self, provenance: Provenance, end: int, time_ms: int) -> RequestOutcomeRecord:
        answer = msgspec.msgpack.encode((200, b"\x80", end, self.epoch))
        return RequestOutcomeRecord(
            provenance.request_id, provenance.request_digest, answer, time_ms
        )

    def _seal(self, time_ms: int, provenance: Provenance, records: list[Record]) -> int:
        mark = self.mark
        time_ms = max(time_ms, mark.timestamp_ms)
        header = BatchHeader(mark.log_end, len(records), self.epoch, time_ms, provenance, mark.head)
        batch = seal(header, encode_records(records))
        self.mark = mark.after(batch)
        self.sealed.append(Sealed(batch, records))
        self.batches += 1
        return time_ms

    def _note_leaders(self, written: Written) -> None:
        if not self._leaders:
            return
        at, at_ms = written.settled_base, written.settled_ms
        moment = Written(at, at, at_ms, at, at_ms)
        for subject, lost in self._leaders:
            if lost:
                self._leaderless[subject] = moment
                continue
            since = self._leaderless.pop(subject)
            if since is not moment:
                self.tell("leaderless", subject, since, "", until=moment)
        self._leaders.clear()


def _cut(records: Sequence[Record], pieces: int) -> list[list[Record]]:
    """Cut a row of records into batches that are not too large, or into as many as asked for."""
    if pieces > 1:
        size = max(1, -(-len(records) // pieces))
        return [list(records[at : at + size]) for at in range(0, len(records), size)]
    if len(records) <= _SURELY_SMALL:
        return [list(records)]
    batches: list[list[Record]] = []
    size = _BATCH_TARGET_BYTES
    for record in records:
        length = len(encode_record(record))
        if size + length > _BATCH_TARGET_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(record)
        size += length
    return batches
