"""A made-up history and a simulated cluster give the same kinds of record, but for some.

Rule: the tables name each kind that only one of them has, or neither, and why. A row that isn't
true any more fails: then the other has learnt to give that kind.
"""

import pytest

from audit.generated import Life
from metadata.codec import decode_records
from metadata.records import RECORD_CLASSES
from tests.simulation.cluster import Cluster
from tests.simulation.cluster_shape import Shape

SIMULATED_S = 15.0
GENERATED_ONLY = {
    "AbortTransaction": "a defect spoils a change half-way; a simulated controller has none",
    "RemoveKey": "the simulated importer adds keys and deletes none",
}
SIMULATED_ONLY: dict[str, str] = {
    "AccessToken": "the made-up people log in with certificates and delegation tokens",
    "CertificateRevocation": "the made-up people lose no key",
    "SubjectKeys": "a leader that is rehearsed alone shares no keys with others",
}
NEITHER = {
    "Attempts": "neither enforces rights; tests/simulation/test_refused_attempts.py does",
    "Bridge": "no store is moved here (a kind of seed of its own: `bridge`)",
    "LegacyBroker": "no store is moved here",
    "ZkMigrationState": "no store is moved here",
    "ClearElr": "Kafka's; a controller here empties ELRs by changes of partitions",
    "EpochStart": "in checkpoints only",
    "OutcomeFloor": "in checkpoints only",
    "FenceBroker": "Kafka's old form of BrokerRegistrationChange",
    "UnfenceBroker": "Kafka's old form of BrokerRegistrationChange",
    "NoOp": "Kafka's; a leader here needs none to know what is committed",
    "ShutdownOffset": "in checkpoints only",
    "SubjectErased": "nobody is erased here (a kind of seed of its own: `erasures`)",
    "Pseudonym": "nobody has one here (a kind of seed of its own: `erasures`)",
    "UnregisterController": "no controller is given up",
    "RemoveAccessToken": "a week after the end of a token",
    "JoinToken": "no node joins: the simulated network has no certificates",
    "RemoveJoinToken": "a week after the end of a token",
    "RemoveCertificateRevocation": "nobody takes a revocation back",
    "HeadKey": "no heads are signed here (a kind of seed of its own: `heads`)",
    "SignedHead": "no heads are signed here",
}
"""Of these, neither has any in so short a time."""


def name_of(kind: type) -> str:
    return kind.__name__.removesuffix("Record")


@pytest.fixture(scope="module")
def generated() -> set[str]:
    life = Life(1, records=30_000, open_transaction=True)
    return {name_of(type(record)) for sealed in life.sealed() for record in sealed.records}


@pytest.fixture(scope="module")
def simulated() -> set[str]:
    """The kinds in the log of a whole cluster, whose brokers and clients do all that they can."""
    shape = Shape(
        brokers=5,
        changes_per_s=12.0,
        topics_max=12,
        configurers=True,
        clients=True,
        session_clients=True,
        importer=True,
        replicated=True,
        moved=True,
        forgotten=True,
        checkpoint_bytes=10_000_000,
        segment_bytes=10_000_000,
    )
    cluster = Cluster(7, shape)
    cluster.start_all()
    cluster.world.run_for(SIMULATED_S)
    leader = cluster.leader()
    assert leader is not None
    ledger = cluster.controllers[leader].ledger
    assert ledger is not None
    assert ledger.log_start == 0
    return {
        name_of(type(record))
        for batch in ledger.batches(0)
        for record in decode_records(batch.records)
    }


@pytest.mark.slow
@pytest.mark.simulation
def test_both_give_the_same_kinds_but_for_those_that_are_named(
    generated: set[str], simulated: set[str]
) -> None:
    every = {name_of(kind) for kind in RECORD_CLASSES}
    assert generated - simulated == set(GENERATED_ONLY)
    assert simulated - generated == set(SIMULATED_ONLY)
    assert every - generated - simulated == set(NEITHER)
    assert all({**GENERATED_ONLY, **SIMULATED_ONLY, **NEITHER}.values())
