"""Our replay against the table of Kafka's images, and the projection that Kafka was shown."""

import json
from collections import Counter

import pytest

from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RequestOutcomeRecord,
    TopicRecord,
)
from tests.oracles.replay import TABLE
from tests.oracles.replay.comparing import differences, kafkas_facts, our_facts, replay
from tests.oracles.replay.differences import KEPT_CONFIG, LOST_CREDENTIAL, excuses
from tests.oracles.replay.logs import packed, unpacked
from tests.oracles.replay.projection import LogBatch, in_kafkas_words, projected

ROWS = [json.loads(line) for line in TABLE.read_text().splitlines()]
NO_OP = NoOpRecord.TYPE_ID


def compared(row, log):
    """Return what differs and must not, and what differs as documented."""
    wrong, documented = [], []
    images = zip(replay(log, row["flush"]), row["images"], excuses(log, row["flush"]), strict=True)
    for ours, shown, excused in images:
        more, known = differences(our_facts(ours), kafkas_facts(shown), excused)
        wrong += more
        documented += known
        assert shown["reloads"]
        if ours.transaction is None:
            assert shown["offset"] == ours.offset - 1
    return wrong, documented


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_our_images_are_kafkas(row):
    wrong, _ = compared(row, unpacked(row["log"]))
    assert wrong == []


def test_the_table_holds_every_family_and_both_documented_differences():
    families: Counter[str] = Counter()
    documented: Counter[str] = Counter()
    for row in ROWS:
        documented.update(compared(row, unpacked(row["log"]))[1])
        for shown in row["images"]:
            families.update(key.split(" ")[0] for key in kafkas_facts(shown))
    assert {int(each) for each in families} == {0, 2, 3, 4, 10, 11, 12, 14, 15, 18, 27}
    assert set(documented) == {KEPT_CONFIG, LOST_CREDENTIAL}


def test_a_record_that_is_left_out_is_seen():
    """Every kind of record matters to the comparison: without the last of a kind, images differ."""
    seen: set[str] = set()
    for row in ROWS:
        log = unpacked(row["log"])
        for kind in {type(r) for batch in log for r in batch.records} - QUIET:
            if kind.__name__ not in seen and any(
                compared_or_refused(row, without(log, kind, nth)) for nth in range(1, 41)
            ):
                seen.add(kind.__name__)
    missing = {type(r) for row in ROWS for b in unpacked(row["log"]) for r in b.records} - QUIET
    assert {kind.__name__ for kind in missing} - seen == set()


QUIET = {NoOpRecord, RequestOutcomeRecord, BeginEpochRecord} | {
    kind
    for kind in Record.__subclasses__()
    if kind.TYPE_ID >= 1000 or kind.__name__ == "ZkMigrationStateRecord"
}
"""These change nothing in Kafka's image."""


def without(log, kind, nth):
    """Return the log with a NoOpRecord in place of the nth-last record of a kind."""
    places = [
        (b, r)
        for b, batch in enumerate(log)
        for r, x in enumerate(batch.records)
        if type(x) is kind
    ]
    if len(places) < nth:
        return log
    number, place = places[-nth]
    records = list(log[number].records)
    records[place] = NoOpRecord()
    return [*log[:number], log[number]._replace(records=tuple(records)), *log[number + 1 :]]


def compared_or_refused(row, log):
    try:
        return bool(compared(row, log)[0])
    except Exception:  # noqa: BLE001 - replay refuses what follows: that is seen, too
        return True


def rows_of(*records: Record):
    [[_, _, _, rows]] = projected([LogBatch(0, 1, 0, records)])
    return [(number, version) for number, version, _ in rows]


def test_a_transaction_that_did_not_end_is_not_shown():
    begin, end, abort = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()
    topic, epoch = TopicRecord("a", b"a" * 16), BeginEpochRecord(1, (), ())
    ended = [(23, 0), (2, 0), (24, 0)]
    nothing = [(NO_OP, 0)] * 3
    assert rows_of(begin, topic, end) == ended
    assert rows_of(begin, topic, abort) == nothing
    assert rows_of(begin, topic, epoch) == nothing
    assert rows_of(begin, topic, abort, begin, topic, end) == nothing + ended
    assert rows_of(epoch, topic, begin) == [(NO_OP, 0), (2, 0), (NO_OP, 0)]
    batches = projected([LogBatch(5, 1, 0, (topic, begin)), LogBatch(7, 1, 0, (topic,))])
    assert [[row[0] for row in rows] for _, _, _, rows in batches] == [[2, NO_OP], [NO_OP]]


@pytest.mark.parametrize(
    ("level", "versions"), [(21, [3, 1, 2]), (23, [3, 2, 2]), (30, [4, 2, 3]), (33, [4, 2, 3])]
)
def test_the_level_in_the_log_chooses_the_versions(level, versions):
    records = (
        FeatureLevelRecord("metadata.version", level),
        RegisterBrokerRecord(1, bytes(16), 1, (), (), None),
        PartitionRecord(0, b"a" * 16, (1,), (1,), (), (), 1, 0, 0),
        BrokerRegistrationChangeRecord(1, 1),
    )
    assert [version for _, version in rows_of(*records)[1:]] == versions


def test_what_is_not_kafkas_keeps_its_offset():
    outcome = RequestOutcomeRecord(b"k" * 16, b"d" * 32, b"", 0)
    own = FeatureLevelRecord("logberg.version", 1)
    topic = TopicRecord("a", b"a" * 16)
    assert rows_of(outcome, own, topic) == [(NO_OP, 0), (NO_OP, 0), (2, 0)]


def test_words_are_kafkas_and_nothing_is_left_out():
    record = TopicRecord("a", b"\xff" * 16)
    assert in_kafkas_words(record, 33) == (2, 0, {"name": "a", "topicId": "_" * 21 + "w"})
    log = [LogBatch(3, 2, 1, (record,))]
    assert unpacked(packed(log)) == log
