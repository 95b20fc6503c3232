"""Replays a batch: docs/format/replay.md, section 3.

Rule: a batch is replayed whole. What is known only at its end is written at its end.
"""

from collections.abc import Iterable

from tests.reference.folds import FOLDS
from tests.reference.ledger import Batch, Checkpoint
from tests.reference.schema import Fields, RefusedError, decode_records
from tests.reference.state import State
from tests.reference.tables import ONE, Tables

DAY_MS = 24 * 60 * 60 * 1000
MOST_OUTCOMES = 1_000_000
MOST_OUTCOME_BYTES = 256 * 1024 * 1024
BYTES_OF_A_BARE_OUTCOME = 56


def fold(state: State, batch: Batch) -> None:
    """Take in a batch as it stands in the log."""
    records = decode_records(batch.records)
    if len(records) != batch.count:
        raise RefusedError(f"the batch at {batch.base} does not hold {batch.count} records")
    fold_records(state, records, batch.base, batch.epoch, batch.timestamp_ms)


def fold_records(
    state: State, records: list[tuple[str, Fields]], base: int, epoch: int, timestamp_ms: int
) -> None:
    """Take in the records of a batch."""
    if base != state.end or epoch < state.epoch:
        raise RefusedError(f"a batch at {base}, epoch {epoch}, where {state.end} is due")
    state.epoch = epoch
    for offset, (name, fields) in enumerate(records, start=base):
        if name not in FOLDS:
            raise RefusedError(f"{name} can't stand in a log")
        FOLDS[name](state, fields, offset)
    state.end, state.timestamp_ms = base + len(records), timestamp_ms
    for tables in state.all_tables():
        _settle_shutdowns(tables, state.end)
    if state.began is None:
        _let_outcomes_go(state.now, timestamp_ms)


def folded(batches: Iterable[Batch], state: State | None = None) -> State:
    """Return the state after all batches."""
    state = State() if state is None else state
    for batch in batches:
        fold(state, batch)
    return state


def loaded(checkpoint: Checkpoint) -> State:
    """Return the state that a checkpoint holds, if it fits the checkpoint's header."""
    state = State.loaded(
        decode_records(checkpoint.records),
        checkpoint.offset,
        checkpoint.epoch,
        checkpoint.timestamp_ms,
    )
    if state.hash() != checkpoint.state_hash:
        raise RefusedError(f"the checkpoint at {checkpoint.offset} has another state hash")
    return state


def _settle_shutdowns(tables: Tables, end: int) -> None:
    """A shutdown waits for the end of the batch that began it."""
    for broker, row in tables["brokers"].items():
        if row["inControlledShutdown"] and broker not in tables["shutdowns"]:
            tables["shutdowns"][broker] = {"brokerId": broker, "offset": end}


def _let_outcomes_go(tables: Tables, timestamp_ms: int) -> None:
    """The smallest key goes first, while it is a day old or there are too many."""
    outcomes = tables["outcomes"]
    size = sum(BYTES_OF_A_BARE_OUTCOME + len(row["answer"]) for row in outcomes.values())
    while outcomes:
        smallest = min(outcomes)
        row = outcomes[smallest]
        young = row["timeMs"] > timestamp_ms - DAY_MS
        if young and len(outcomes) <= MOST_OUTCOMES and size <= MOST_OUTCOME_BYTES:
            return
        size -= BYTES_OF_A_BARE_OUTCOME + len(row["answer"])
        del outcomes[smallest]
        tables["floor"][ONE] = {"key": smallest}
