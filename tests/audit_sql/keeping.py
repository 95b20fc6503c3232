"""Kept tables made in plain Python, without Spark: what the pipeline keeps, for tests.

Rule: bronze comes from the log's batches, and each other table from the embedded engine's job. So a
test can have kept tables in a second, and compare the pipeline's with them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from audit.embedded import run_job
from audit.embedded.days import day_of
from audit.embedded.provenance import who
from audit.lake.commit import commit
from audit.lake.files import write_file
from audit.lake.place import LakePlace
from audit.lake.schemas import arrow_schema, rows_to_kept, to_kept
from audit.reading.settling import moments, settled
from audit.spark.source.bronze import BRONZE_COLUMNS, bronze_rows
from audit.tables import BRONZE, BY_NAME, CONFIG_EVENTS, KEPT, AuditTable
from ledger.batch import Batch
from metadata.records import ConfigRecord, RemoveTopicRecord, TopicRecord
from metadata.records.configs import config_kind
from tests.unit.audit.memory_log import replica_of


def bronze_table(batches: Iterable[Batch]) -> pa.Table:
    """The log as a table, in its kept form, in the log's order."""
    pieces = [to_kept(rows, BRONZE) for rows in bronze_rows(batches, [*BRONZE_COLUMNS, "record"])]
    whole = pa.concat_tables(pieces) if pieces else rows_to_kept([], BRONZE)
    return whole.sort_by("offset")


def config_events(batches: Iterable[Batch]) -> Iterator[tuple[Any, ...]]:
    """The rows of `CONFIG_EVENTS`."""
    names: dict[bytes, str] = {}
    for moment in moments(settled(batches)):
        for logged in moment.records:
            record, header = logged.record, logged.header
            if isinstance(record, TopicRecord):
                names[record.topic_id] = record.name
            elif isinstance(record, ConfigRecord | RemoveTopicRecord):
                if isinstance(record, ConfigRecord):
                    value = "***" if record.secret_fields() else record.value
                    kind = config_kind(record.resource_type)
                    what = (kind, record.resource_name, record.name, value)
                else:
                    what = ("topic", names[record.topic_id], None, None)
                yield (
                    logged.offset,
                    moment.base,
                    moment.time_ms,
                    day_of(moment.time_ms),
                    *what,
                    *who(header.provenance),
                    header.provenance.auth_method,
                    header.provenance.client_address,
                    header.acted_as,
                )


def keep(batches: Sequence[Batch], where: str) -> LakePlace:
    """Keep all tables of a log that begins at offset 0, but findings."""
    place = LakePlace(where, "audited-cluster")
    replica = replica_of(batches)
    for path, table in KEPT.items():
        if table is BRONZE:
            rows = bronze_table(batches)
        elif table is CONFIG_EVENTS:
            rows = rows_to_kept(config_events(batches), table)
        else:
            found = run_job(table.name, [replica]) if table.name in BY_NAME else []
            rows = rows_to_kept(found, table)
        _write(place, path, table, rows)
    return place


def _write(place: LakePlace, path: str, table: AuditTable, rows: pa.Table) -> None:
    file = write_file(place, path, rows, "batch-0")
    commit(place, path, arrow_schema(table), [file], batch=0)
