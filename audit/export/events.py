"""What is exported: changes and attempts, as one kind of event."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from audit.questions.search import FoundRecord
from ledger.batch import BatchHeader
from metadata.records import (
    AbortTransactionRecord,
    AttemptOutcome,
    AttemptsRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    RequestOutcomeRecord,
)
from metadata.uuids import uuid_text

RESOURCES_MAX: Final = 20
"""The most resources that an event names."""
_BOOKKEEPING: Final = (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
    RequestOutcomeRecord,
)


class ExportedEvent(NamedTuple):
    """One event."""

    offset: int
    """Of its first record."""
    cluster_id: str
    is_attempt: bool
    refused: bool
    only_logged: bool
    """It would be refused, but rights are only logged."""
    times: int
    """How many attempts, or records of a change."""
    time_ms: int
    """When it came, or the first of them."""
    last_ms: int
    principal: str
    """Empty: nobody who was authenticated."""
    on_behalf_of: str
    """The user for whom the principal spoke."""
    auth_method: str
    address: str
    client_id: str
    operation: str
    resources: tuple[str, ...]
    code: str
    reason: str
    request_id: str
    request: str
    answer: str
    controller_id: int
    """The controller that was asked, or that wrote the change; -1: not said."""


def exported(
    found: Iterable[FoundRecord], cluster_id: str, *, changes: bool = True, attempts: bool = True
) -> Iterator[ExportedEvent]:
    """Yield the events of settled records, which a search yields in the log's order."""
    header: BatchHeader | None = None
    batch: list[FoundRecord] = []
    for one in found:
        if one.logged.header is not header:
            if batch:
                yield _change(batch, cluster_id)
            header, batch = one.logged.header, []
        record = one.logged.record
        if isinstance(record, AttemptsRecord):
            if attempts:
                yield _attempts(one.logged.offset, record, cluster_id)
        elif changes and not isinstance(record, _BOOKKEEPING):
            batch.append(one)
    if batch:
        yield _change(batch, cluster_id)


def _change(batch: list[FoundRecord], cluster_id: str) -> ExportedEvent:
    logged = batch[0].logged
    header, said = logged.header, logged.header.provenance
    words = dict.fromkeys(one.subjects[0] for one in batch if one.subjects)
    return ExportedEvent(
        offset=logged.offset,
        cluster_id=cluster_id,
        is_attempt=False,
        refused=False,
        only_logged=False,
        times=len(batch),
        time_ms=header.timestamp_ms,
        last_ms=header.timestamp_ms,
        principal=said.principal,
        on_behalf_of=said.on_behalf_of,
        auth_method=said.auth_method,
        address=said.client_address,
        client_id=said.client_id,
        operation=said.operation,
        resources=tuple(words)[:RESOURCES_MAX],
        code="",
        reason=said.reason,
        request_id=uuid_text(said.request_id) if said.request_id else "",
        request="",
        answer="",
        controller_id=-1,
    )


def _attempts(offset: int, record: AttemptsRecord, cluster_id: str) -> ExportedEvent:
    forwarded = bool(record.through)
    return ExportedEvent(
        offset=offset,
        cluster_id=cluster_id,
        is_attempt=True,
        refused=record.outcome == AttemptOutcome.REFUSED,
        only_logged=record.outcome == AttemptOutcome.WOULD_BE_REFUSED,
        times=record.count,
        time_ms=record.first_ms,
        last_ms=record.last_ms,
        principal=record.through if forwarded else record.principal,
        on_behalf_of=record.principal if forwarded else "",
        auth_method=record.auth_method,
        address=record.address,
        client_id=record.client_id,
        operation=record.operation,
        resources=(record.resource,) if record.resource else (),
        code=record.code,
        reason=record.reason,
        request_id="",
        request=record.request,
        answer=record.answer,
        controller_id=record.controller_id,
    )


def sentence(event: ExportedEvent) -> str:
    """Return an event as one sentence for people."""
    who = event.principal or "a caller without credentials"
    if event.on_behalf_of:
        who += f" for {event.on_behalf_of}"
    what = " ".join((event.operation or "an unnamed operation", *event.resources[:1]))
    if not event.is_attempt:
        return f"{who}: {what}"
    did = "refused" if event.refused else "would be refused" if event.only_logged else "accepted"
    times = f"{event.times} times " if event.times > 1 else ""
    why = f": {event.reason or event.code}" if event.reason or event.code else ""
    return f"{who}: {what} was {did} {times}".rstrip().replace("was would", "would") + why
