"""The visible effect of each batch of a log on topics.

Rule: only visible changes count, so the effect of a transaction belongs to the batch that ends it.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from tests.reference.folding import fold_records
from tests.reference.ledger import Batch
from tests.reference.schema import decode_records
from tests.reference.state import State

WHOLE = {"EndTransactionRecord", "ClearElrRecord", "BeginTransactionRecord"}
"""Records after which any topic may look different."""
Summary = list[Any]


class Change(NamedTuple):
    """A batch and what it made of topics; None: gone."""

    batch: Batch
    topics: dict[str, Summary | None]


def changes(state: State, batches: Iterable[Batch]) -> Iterator[Change]:
    """Fold the batches into `state`, and give what each of them changes, by topic name."""
    seen = summaries(state, state.tables["topics"])
    for batch in batches:
        records = decode_records(batch.records)
        fold_records(state, records, batch.base, batch.epoch, batch.timestamp_ms)
        touched: set[bytes] = set()
        for name, fields in records:
            if name in WHOLE:
                touched |= seen.keys() | state.tables["topics"].keys()
            elif "topicId" in fields:
                touched.add(fields["topicId"])
        now = summaries(state, touched)
        topics: dict[str, Summary | None] = {}
        for topic in sorted(touched):
            before = seen.pop(topic, None)
            if topic in now:
                seen[topic] = now[topic]
            if before != now.get(topic):
                name, summary = now.get(topic) or (before[0], None)
                # Of one that goes and one that comes under its name the latter counts.
                if summary is not None or topics.get(name) is None:
                    topics[name] = summary
        yield Change(batch, topics)


def summaries(state: State, topics: Collection[bytes]) -> dict[bytes, tuple[str, Summary]]:
    """Return names and summaries of topics, as far as they are there."""
    wanted = {topic for topic in topics if topic in state.tables["topics"]}
    partitions: dict[bytes, list[Any]] = {topic: [] for topic in wanted}
    for (topic, number), row in state.tables["partitions"].items() if wanted else ():
        if topic in wanted:
            partitions[topic].append((number, row))
    found = {}
    for topic, mine in partitions.items():
        rows = [row for _, row in sorted(mine, key=lambda each: each[0])]
        found[topic] = (
            state.tables["topics"][topic]["name"],
            [
                topic.hex(),
                len(rows),
                next((len(row["replicas"]) for row in rows if row["replicas"]), 0),
                sum(row["leader"] < 0 for row in rows),
                sum(len(row["isr"]) < len(row["replicas"]) for row in rows),
            ],
        )
    return found
