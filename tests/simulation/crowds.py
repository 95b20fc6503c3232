"""Many brokers, and controllers that admit few of them at a time.

All brokers begin at the same moment, so most registrations are refused at first. Leaders are killed
again and again. Their successors fill the table of sessions in slices, and every broker turns to
them at once. `silent_brokers` judges whether a live broker is fenced for its silence.
"""

from collections import Counter
from typing import Any

from ledger.batch import Batch


def count_crowd(cluster: Any) -> Counter[str]:
    """Return what the crowd met."""
    batches = _batches(cluster)
    operations = Counter(batch.header.provenance.operation for batch in batches)
    silent = [b for b in batches if b.header.provenance.reason.startswith("not heard from")]
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
