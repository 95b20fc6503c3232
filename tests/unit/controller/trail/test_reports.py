"""Reports: what comes back is what was counted, and nothing else counts as a report."""

import msgspec
import pytest

from controller.trail.counting import AttemptCounts
from controller.trail.reports import (
    REPORT,
    REPORT_BYTES_MAX,
    SMALL_REPORT_BYTES_MAX,
    cut_report,
    decode_report,
    encode_report,
)
from metadata.codec import encode_records
from metadata.records import AttemptDetail, AttemptOutcome, NoOpRecord
from quorum.wire.frames import CONTACTS_BYTES_MAX, DIGEST_BYTES_MAX
from tests.unit.controller.trail.test_counting import BASE

LIFE = b"l" * 16


def counted(kinds: int, *, long: bool = False) -> AttemptCounts:
    counts = AttemptCounts(kinds_of_a_source=kinds)
    for number in range(kinds):
        resource = f"topic:{number}" + ("é" * 5_000 if long else "")
        attempt = BASE._replace(resource=resource)
        if long:
            attempt = attempt._replace(reason=resource, request=resource, answer=resource)
        for _ in range(number + 1):
            counts.note(AttemptOutcome.REFUSED, AttemptDetail.RESPONSE, attempt, number)
    return counts


def test_a_report_comes_back_as_it_was() -> None:
    records = cut_report(counted(5), 3, LIFE, 7, 100, small=False)
    data = encode_report(records)
    assert decode_report(3, data) == records
    assert [record.count for record in records] == [1, 2, 3, 4, 5]
    assert [record.total for record in records] == [101, 103, 106, 110, 115]
    assert {record.number for record in records} == {7}


def test_what_does_not_fit_stays_for_the_next_report() -> None:
    counts, found, reports = counted(400), 0, 0
    while len(counts):
        reports += 1
        records = cut_report(counts, 1, LIFE, reports, found, small=False)
        assert len(encode_report(records)) <= REPORT_BYTES_MAX + 8 < CONTACTS_BYTES_MAX
        found += sum(record.count for record in records)
    assert found == 400 * 401 // 2
    assert reports > 1


def test_the_longest_texts_make_a_report_of_one() -> None:
    records = cut_report(counted(3, long=True), 1, LIFE, 1, 0, small=False)
    data = encode_report(records)
    assert records
    assert len(data) <= REPORT_BYTES_MAX + 8
    assert decode_report(1, data) == records


@pytest.mark.parametrize("long", [False, True])
def test_an_observer_s_report_fits_into_a_small_message(long: bool) -> None:
    counts, found, number = counted(9, long=long), 0, 0
    while len(counts):
        number += 1
        records = cut_report(counts, 2**31 - 1, LIFE, number, found, small=True)
        data = encode_report(records)
        assert len(data) <= SMALL_REPORT_BYTES_MAX + 8 <= DIGEST_BYTES_MAX
        assert decode_report(2**31 - 1, data) == records
        found += sum(record.count for record in records)
    assert found == 45


def changed(**fields: object) -> bytes:
    first, *rest = cut_report(counted(3), 1, LIFE, 2, 10, small=False)
    return encode_report([msgspec.structs.replace(first, **fields), *rest])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        REPORT,
        REPORT + b"nonsense",
        REPORT + encode_records([]),
        REPORT + encode_records([NoOpRecord()]),
        changed()[1:],
        changed() + b"\0",
        changed(controller_id=2),
        changed(life=b"m" * 16),
        changed(number=3),
        changed(number=0),
        changed(count=0),
        changed(count=-1),
        changed(total=12),
        changed(first_ms=5, last_ms=4),
        REPORT
        + encode_records([*cut_report(counted(1), 1, LIFE, 2, 0, small=False), NoOpRecord()]),
        REPORT + b"\0" * 100_000,
    ],
)
def test_what_is_no_report_of_this_controller(data: bytes) -> None:
    assert decode_report(1, changed()) is not None
    assert decode_report(1, data) is None
