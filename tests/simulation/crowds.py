"""Many brokers, and controllers that admit few of them at a time.

All brokers begin at the same moment, so most registrations are refused at first. Leaders are killed
again and again. Their successors fill the table of sessions in slices, and every broker turns to
them at once.

Rule: while no broker ends and none is cut off, none is ever fenced for its silence, whichever
leader counts its session. In a seed whose brokers end too, only the other invariants hold.
"""

from collections import Counter
from typing import Any

from ledger.batch import Batch


def judge_crowd(cluster: Any) -> Counter[str]:
    """Return what the crowd met; fail if a broker that never ended was fenced."""
    batches = _batches(cluster)
    operations = Counter(batch.header.provenance.operation for batch in batches)
    silent = [b for b in batches if b.header.provenance.reason.startswith("not heard from")]
    if silent and cluster.shape.broker_fault_schedule < 0.001:
        offset, why = silent[0].header.base_offset, silent[0].header.provenance.reason
        cluster.world.fail(f"a broker that never ended was fenced at offset {offset}: {why}", None)
    return Counter(
        crowd_registered=operations["RegisterBroker"],
        crowd_unfenced=operations["UnfenceBroker"],
        crowd_fenced=len(silent),
    )


def _batches(cluster: Any) -> list[Batch]:
    """All batches, from the node with the longest history."""
    ledgers = [c.ledger for c in cluster.controllers.values() if c.ledger is not None]
    ledger = min(ledgers, key=lambda each: each.log_start)
    return list(ledger.batches(ledger.log_start))
