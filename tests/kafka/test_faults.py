"""Clients produce, consume and change a config while our leader is struck again and again.

A minute of each fault. Ten minutes, with stock KRaft beside: `python -m benchmarks.kafka.failover`.
"""

import pytest

from logberg.kafka.jars import kafka_jars
from tests.kafka.faults.run import struck_run
from tests.kafka.faults.striking import (
    CutLeader,
    FullDisk,
    KilledLeader,
    NoSmallDiskError,
    PausedLeader,
    small_disks,
)
from tests.kafka.jvm.programs import JavaPrograms
from tests.kafka.our_controllers import our_controllers


@pytest.mark.parametrize("kind", [KilledLeader, PausedLeader, CutLeader, FullDisk])
def test_nothing_acknowledged_is_lost_and_no_broker_is_fenced(tmp_path, kind) -> None:
    jars = kafka_jars()
    programs = JavaPrograms(jars)
    try:
        with our_controllers(
            tmp_path,
            small_disks(tmp_path) if kind is FullDisk else None,
            relays=kind is CutLeader,
            internal_replicas=3,
        ) as cluster:
            cluster.add_brokers(3, jars)
            fault = PausedLeader() if kind is PausedLeader else kind(cluster)
            found = struck_run(cluster, fault, programs, tmp_path, minutes=1.0)
    except NoSmallDiskError as error:
        pytest.skip(f"no small file system can be mounted here: {error}")
    assert found.problems() == []
    # The change under way when the leader loses its office has an unknown outcome, and says so.
    assert found.failed_changes <= found.strikes
    assert found.strikes >= 2
    # Each strike cost a leader its office.
    assert found.elections > found.strikes
