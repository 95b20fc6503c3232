"""The embedded engine and the SQL agree on generated histories; a fold that is wrong is noticed.

Rule: the two share the decoding of records and nothing else. `LOGBERG_SQL_SEEDS=100` compares so
many more histories.
"""

import os

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("deltalake")

from audit.embedded import run_job
from audit.generated import batches as generated
from metadata.codec import decode_records
from metadata.image import EMPTY, MetadataDelta
from metadata.uuids import uuid_text
from tests.audit_sql.calculation import COMPARED, SqlCalculation, check, compare_rows, sql_answers
from tests.audit_sql.keeping import bronze_table
from tests.unit.audit.memory_log import history, replica_of, seal_all

SEEDS = range(int(os.environ.get("LOGBERG_SQL_SEEDS", "8")))
LIVED = ((1, 2_500), (2, 900))


def compare(batches, up_to=None) -> None:
    replica = replica_of(batches)
    check(bronze_table(batches), lambda job: run_job(job, [replica], up_to=up_to), up_to)


@pytest.mark.parametrize("seed", SEEDS)
def test_they_agree_on_any_history(seed: int) -> None:
    batches = seal_all(history(seed, 30 + 17 * seed % 150))
    compare(batches)
    compare(batches, batches[len(batches) // 2].header.base_offset)


@pytest.mark.parametrize(("seed", "records"), LIVED)
def test_they_agree_on_a_lifelike_history(seed: int, records: int) -> None:
    compare(list(generated(seed, records=records, open_transaction=True)))


@pytest.mark.parametrize("seed", range(3))
def test_states_are_those_of_the_image(seed: int) -> None:
    batches = list(generated(seed, records=900)) if seed else seal_all(history(4, 150))
    image = EMPTY
    with SqlCalculation(bronze_table(batches)) as calculation:
        for number, batch in enumerate(batches):
            header = batch.header
            delta = MetadataDelta(image)
            delta.replay_all(decode_records(batch.records), header.base_offset)
            delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
            image = delta.apply()
            if number % 40 == 7 or batch is batches[-1]:
                wanted = sorted(
                    (uuid_text(topic_id), n, partition.leader, partition.isr, partition.replicas)
                    for (topic_id, n), partition in image.topics.partitions.items()
                )
                assert calculation.partitions_at(header.base_offset + 1) == wanted


def test_every_table_has_rows_to_compare() -> None:
    with SqlCalculation(bronze_table(list(generated(1, records=2_500)))) as calculation:
        assert [job for job in COMPARED if not calculation.rows(job)] == []
        kinds = {row[3] for row in calculation.rows("privileged")}
        assert {"acl", "user"} <= kinds


@pytest.mark.parametrize("job", COMPARED)
def test_a_row_that_is_wrong_is_noticed(job: str) -> None:
    """Mutants of folds are in `test_fold_mutants`."""
    batches = list(generated(1, records=900))
    wanted = sql_answers(bronze_table(batches))
    right = {each: run_job(each, [replica_of(batches)]) for each in COMPARED}
    compare_rows(right.__getitem__, wanted)
    first, *rest = right[job]
    for wrong in (rest, [first, first, *rest], [(*first[:2], "x", *first[3:]), *rest]):
        with pytest.raises(AssertionError, match=f"{job}: the engine says"):
            compare_rows((right | {job: wrong}).__getitem__, wanted)
