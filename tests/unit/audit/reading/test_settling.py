"""Settling: which records count, and from which batch on, wherever the markers are."""

from audit.reading.settling import Logged, moments, settled
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
)
from tests.unit.audit.memory_log import logged

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()
EPOCH = BeginEpochRecord(1, (), ())
NO_OP = NoOpRecord()


def outcomes(*groups) -> list[tuple[int, str, int | None]]:
    """(offset, outcome, settled base) of each record, in the order in which they come."""
    return [(one.offset, one.outcome, one.settled_base) for one in settled(logged(*groups))]


def test_what_stands_outside_of_transactions_settles_with_its_own_batch() -> None:
    assert outcomes([NO_OP, NO_OP], [NO_OP]) == [
        (0, "settled", 0),
        (1, "settled", 0),
        (2, "settled", 2),
    ]


def test_a_transaction_settles_with_the_batch_of_its_end_in_the_midst_of_batches() -> None:
    found = outcomes([NO_OP, BEGIN, NO_OP], [NO_OP, NO_OP], [NO_OP, END, NO_OP])
    assert found == [
        (0, "settled", 0),
        *((offset, "settled", 5) for offset in range(1, 8)),
    ]


def test_the_time_of_settling_is_that_of_the_end_s_batch_and_the_header_stays_the_record_s() -> (
    None
):
    one = list(settled(logged([BEGIN], [NO_OP], [END])))[1]
    assert one.settled_ms == 1_700_000_002_000
    assert one.header.timestamp_ms == 1_700_000_001_000


def test_an_abort_takes_its_transaction_from_begin_to_abort_and_nothing_else() -> None:
    found = outcomes([NO_OP, BEGIN, NO_OP, ABORT, NO_OP])
    assert found == [
        (0, "settled", 0),
        (1, "aborted", None),
        (2, "aborted", None),
        (3, "aborted", None),
        (4, "settled", 0),
    ]


def test_a_new_epoch_discards_the_open_transaction_and_counts_itself() -> None:
    found = outcomes([BEGIN, NO_OP], [NO_OP, EPOCH, NO_OP])
    assert [outcome for _, outcome, _ in found] == [
        "aborted",
        "aborted",
        "aborted",
        "settled",
        "settled",
    ]
    assert found[3:] == [(3, "settled", 2), (4, "settled", 2)]


def test_two_transactions_and_what_stands_between_them_in_one_batch() -> None:
    found = outcomes([BEGIN, END, NO_OP, BEGIN, ABORT, BEGIN])
    assert [outcome for _, outcome, _ in found] == ["settled"] * 3 + ["aborted"] * 2 + ["open"]


def test_what_is_open_at_the_end_comes_last_and_is_called_so() -> None:
    assert outcomes([NO_OP, BEGIN], [NO_OP]) == [
        (0, "settled", 0),
        (1, "open", None),
        (2, "open", None),
    ]


def test_an_end_without_a_begin_settles_by_itself() -> None:
    assert outcomes([END], [ABORT], [NO_OP]) == [
        (0, "settled", 0),
        (1, "settled", 1),
        (2, "settled", 2),
    ]


def test_a_record_comes_as_soon_as_its_outcome_is_known() -> None:
    """A follower of a log must not wait for a batch that may never come."""
    seen: list[int] = []

    def batches():
        for batch in logged([NO_OP], [BEGIN], [END], [NO_OP]):
            seen.append(batch.header.base_offset)
            yield batch

    found = settled(batches())
    assert next(found).offset == 0
    assert seen == [0]
    assert next(found).offset == 1
    assert seen == [0, 1, 2]


def test_moments_hold_all_that_settles_in_one_batch() -> None:
    level = FeatureLevelRecord("f", 1)
    steps = list(moments(settled(logged([NO_OP, BEGIN], [level], [level, END, NO_OP], [ABORT]))))
    assert [(step.base, [one.offset for one in step.records]) for step in steps] == [
        (0, [0]),
        (3, [1, 2, 3, 4, 5]),
        (6, [6]),
    ]
    assert steps[1].time_ms == 1_700_000_002_000
    assert all(isinstance(one, Logged) for one in steps[1].records)


def test_moments_leave_out_what_does_not_count() -> None:
    assert list(moments(settled(logged([BEGIN, NO_OP, ABORT], [BEGIN])))) == []
