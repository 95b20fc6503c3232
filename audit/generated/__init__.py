"""Histories worth auditing, made up: weeks of a cluster's life, from a seed.

Rule: the same arguments give the same bytes, on every Python; every record is one that replay
accepts, and what happens is what happens in clusters. For tests, demonstrations and benchmarks:
`write_history` makes nodes' folders, `batches` needs no disk.

`story` has the tables of what happens and `life` plays them. `works`, `failures` and
`large_operations` are its episodes; `brokers`, `replicas`, `topics`, `security` and `coordinating`
are what people, services and brokers do; `cast` and `people` are who they are. `stage` has the
clock and the controllers, `chronicle` keeps the `facts`, and `writing` puts all of it on disk.
"""

from collections.abc import Iterator

from audit.generated.facts import Fact, GeneratedHistory
from audit.generated.life import CLUSTER_ID, Life
from audit.generated.writing import write_history
from ledger.batch import Batch

__all__ = ["CLUSTER_ID", "Fact", "GeneratedHistory", "Life", "batches", "write_history"]


def batches(
    seed: int = 1,
    *,
    days: float | None = None,
    records: int | None = None,
    cluster_id: str = CLUSTER_ID,
    brokers: int | None = None,
    topics: int | None = None,
    open_transaction: bool = False,
) -> Iterator[Batch]:
    """Yield the sealed batches of a history; at least one of `days` and `records` is given.

    Raises ValueError. `Life` also yields the records as they were before they were encoded, and
    knows the facts afterwards.
    """
    life = Life(
        seed,
        days=days,
        records=records,
        cluster_id=cluster_id,
        brokers=brokers,
        topics=topics,
        open_transaction=open_transaction,
    )
    return (sealed.batch for sealed in life.sealed())
