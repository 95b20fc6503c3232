"""One metadata log everywhere: each controller that leads projects it, and brokers keep it.

The logs are read over the wire from whoever leads, and from the brokers' segment files. Batches at
the same offset must be the same bytes.
"""

from pathlib import Path

from logberg.kafka.jars import kafka_jars
from tests.kafka.broker_logs import batches_by_offset, end_of, segment_bytes
from tests.kafka.jvm.programs import JavaPrograms
from tests.kafka.metadata_client import LogRead
from tests.kafka.our_controllers import CONTROLLERS, OurControllers, our_controllers


def read_leader(cluster: OurControllers) -> tuple[int, LogRead]:
    """Return the leading controller and its log."""
    leader = cluster.number_of(cluster.leading())
    with cluster.kafka(leader) as client:
        return leader, client.read_log()


def check_same(logs: dict[str, bytes]) -> int:
    """Check that batches at the same offset are equal; return how many offsets are in all logs."""
    batches = {name: batches_by_offset(data) for name, data in logs.items()}
    everywhere = set.intersection(*(set(each) for each in batches.values()))
    for one, its in batches.items():
        for other, others in batches.items():
            differing = [at for at in its.keys() & others.keys() if its[at] != others[at]]
            assert not differing, f"{one} and {other} differ at {differing[:5]}"
    return len(everywhere)


def brokers_logs(cluster: OurControllers) -> dict[str, bytes]:
    return {broker.name: segment_bytes(Path(broker.folder / "data")) for broker in cluster.brokers}


def every_controller_leads(cluster: OurControllers, programs: JavaPrograms, tag: str):
    """Let each controller lead in turn by killing the others' leaders; yield what it projects."""
    seen: dict[int, LogRead] = {}
    for turn in range(20):
        leader, log = read_leader(cluster)
        seen[leader] = log
        if len(seen) == len(CONTROLLERS):
            return seen
        programs.run("Topic", cluster.bootstrap, f"{tag}-{turn}", "2", "2")
        child = cluster.leading()
        child.kill()
        cluster.until(lambda gone=leader: cluster.leader() not in (0, gone), "another leads")
        child.start()
        cluster.until(lambda gone=leader: cluster.status(gone), "it is back")
    raise AssertionError(f"only {sorted(seen)} led in 20 turns")


def test_controllers_and_brokers_hold_the_same_bytes(tmp_path) -> None:
    jars = kafka_jars()
    programs = JavaPrograms(jars)
    with our_controllers(tmp_path) as cluster:
        cluster.add_brokers(2, jars)
        programs.run("Basics", cluster.bootstrap, "basics", "3", "2")
        logs = {
            f"controller {n}": log.data
            for n, log in every_controller_leads(cluster, programs, "turn").items()
        }
        end = min(end_of(data) for data in logs.values())
        cluster.until(
            lambda: all(end_of(data) >= end for data in brokers_logs(cluster).values()),
            "the brokers hold as much",
        )
        assert check_same({**logs, **brokers_logs(cluster)}) > 0
        held = brokers_logs(cluster)
        assert all(min(batches_by_offset(data)) == 0 for data in held.values())


def test_after_restarts_and_jumps_the_bytes_are_the_same(tmp_path) -> None:
    """A small journal and frequent checkpoints: who was away a while jumps by a checkpoint."""
    jars = kafka_jars()
    programs = JavaPrograms(jars)
    with our_controllers(
        tmp_path, checkpoint_bytes=16_384, journal_tail_bytes=65_536, segment_bytes=262_144
    ) as cluster:
        cluster.add_brokers(2, jars)
        programs.run("Basics", cluster.bootstrap, "basics", "3", "2")
        leader = cluster.leader()
        away = next(n for n in CONTROLLERS if n != leader)
        cluster.local.controllers[away].kill()
        for number in range(12):
            programs.run("Topic", cluster.bootstrap, f"meanwhile-{number}", "100", "2")
        cluster.local.controllers[away].start()
        cluster.until(lambda: cluster.status(away), "it is back")
        logs = every_controller_leads(cluster, programs, "turn")
        # Those that were restarted began where their images were loaded.
        assert any(log.snapshot is not None for log in logs.values()), sorted(logs)
        check_same(
            {
                **{f"controller {n}": log.data for n, log in logs.items()},
                **brokers_logs(cluster),
            }
        )
