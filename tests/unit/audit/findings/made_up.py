"""Made-up histories in memory, and their moments, for the tests of findings."""

from functools import lru_cache
from typing import Any

from audit.generated.facts import Fact
from audit.generated.life import Life
from audit.reading.settling import Moment, moments, settled
from ledger.batch import Batch
from tests.unit.audit.memory_log import replica_of

MONTH = 30.0


@lru_cache(maxsize=6)
def lived(seed: int, days: float) -> tuple[list[Batch], tuple[Fact, ...]]:
    """Return a history's batches, and what happened in it."""
    life = Life(seed, days=days)
    batches = [sealed.batch for sealed in life.sealed()]
    return batches, life.facts


def replica(seed: int, days: float) -> Any:
    return replica_of(lived(seed, days)[0])


def moments_of(seed: int, days: float) -> list[Moment]:
    return list(moments(settled(lived(seed, days)[0])))
