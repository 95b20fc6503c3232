"""Two thousand partitions on three real brokers: created, led, and a controller's failover.

    python -m benchmarks.kafka.partitions [--partitions 2000] [--replicas 3] [--on ours,stock]
                                          [--version 4.3.1] [--page FILE] [--folder DIR]

Figures: until CreateTopics is answered, until each partition has a leader in the brokers' own
metadata, and from SIGKILL of the leading controller until the next one leads and until a change is
acknowledged. Exit 1 if ours leaves a partition without a leader, or fences or restarts a broker.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from benchmarks.kafka.failover import BROKERS
from benchmarks.kafka.failover_page import conditions, write_part
from logberg.kafka.broker_process import KafkaProcess
from logberg.kafka.jars import DEFAULT_VERSION, kafka_jars
from logberg.kafka.kafka_error import KafkaError
from logberg.local.child import Child
from tests.kafka.broker_logs import entries, segment_bytes
from tests.kafka.faults.load import Told
from tests.kafka.faults.verdict import judge
from tests.kafka.jvm.programs import JavaPrograms
from tests.kafka.metadata_client import METADATA, MetadataClient, leader_of
from tests.kafka.our_controllers import our_controllers
from tests.kafka.stock_kraft import stock_cluster

TOPIC: Final = "wide"
_LIMIT_S: Final = 240.0
_REST_S: Final = 14.0
_HEAP: Final = {"num.replica.fetchers": "1", "log.index.size.max.bytes": "65536"}
"""Each replica has two index files of that size; the default is 10 MiB."""


class WideCluster(Protocol):
    """What is measured."""

    @property
    def bootstrap(self) -> str: ...

    @property
    def brokers(self) -> Sequence[KafkaProcess]: ...

    @property
    def addresses(self) -> list[str]: ...

    def leading(self, limit_s: float = 30.0) -> Child: ...

    def revive(self, child: Child) -> None: ...


class WideFigures(NamedTuple):
    """Seconds, and what must be 0."""

    on: str
    created_s: float
    led_s: float
    next_leader_s: float
    change_s: float
    leaderless: int
    fenced: int
    restarted: int

    def said(self) -> str:
        return (
            f"{self.on}: created in {self.created_s:.1f} s, all led after {self.led_s:.1f} s; "
            f"failover: next leader {self.next_leader_s:.2f} s, next change {self.change_s:.2f} s; "
            f"{self.leaderless} without leader, {self.fenced} fenced, {self.restarted} restarted"
        )


def measure(
    cluster: WideCluster, on: str, programs: JavaPrograms, partitions: int, replicas: int
) -> WideFigures:
    """Create, wait, kill the leader, wait."""
    since_ms = _now_ms()
    printed = programs.run("Topic", cluster.bootstrap, TOPIC, str(partitions), str(replicas))
    began_ms, answered_ms = map(int, printed.split())
    _until(
        lambda: all(_leaderless(cluster, one, partitions) == 0 for one in cluster.brokers),
        "each partition has a leader",
    )
    led_ms = _now_ms()
    time.sleep(_REST_S)
    leader = cluster.leading()
    before = leader_of(cluster.addresses).epoch
    struck_ms = _now_ms()
    leader.kill()
    _until(lambda: leader_of(cluster.addresses).epoch > before, "another leads")
    next_ms = _now_ms()
    _until(lambda: _changes(cluster), "a change is acknowledged")
    change_ms = _now_ms()
    cluster.revive(leader)
    # A session and a half: who is to be fenced is fenced by then.
    time.sleep(_REST_S)
    log = list(entries(segment_bytes(Path(cluster.brokers[0].folder / "data"))))
    found = judge(Told(), log, since_ms, strikes=1, elections=0)
    return WideFigures(
        on,
        (answered_ms - began_ms) / 1000,
        (led_ms - began_ms) / 1000,
        (next_ms - struck_ms) / 1000,
        (change_ms - struck_ms) / 1000,
        max(_leaderless(cluster, one, partitions) for one in cluster.brokers),
        found.fenced,
        found.restarted,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _until(look: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _LIMIT_S
    while not look():
        if time.monotonic() > end:
            raise KafkaError(f"not within {_LIMIT_S:.0f} s: {what}")
        time.sleep(0.05)


def _leaderless(cluster: WideCluster, broker: KafkaProcess, partitions: int) -> int:
    """Return how many partitions have no leader in one broker's own metadata."""
    place = list(cluster.brokers).index(broker)
    with MetadataClient(cluster.bootstrap.split(",")[place], 10.0) as client:
        fields = {
            "Topics": [{"TopicId": bytes(16), "Name": TOPIC}],
            "AllowAutoTopicCreation": False,
        }
        topics = client.ask(METADATA, 12, fields)["Topics"]
    led = sum(each["LeaderId"] >= 0 for each in topics[0]["Partitions"]) if topics else 0
    return partitions - led


def _changes(cluster: WideCluster) -> bool:
    """Change a config through a broker; return whether it was acknowledged."""
    fields = {
        "Resources": [
            {
                "ResourceType": 2,
                "ResourceName": TOPIC,
                "Configs": [
                    {
                        "Name": "retention.ms",
                        "ConfigOperation": 0,
                        "Value": str(100_000_000 + time.monotonic_ns() % 1_000_000),
                    }
                ],
            }
        ],
        "ValidateOnly": False,
    }
    try:
        with MetadataClient(cluster.bootstrap.split(",")[0], 15.0) as client:
            answer = client.ask(44, 1, fields)
    except OSError:
        return False
    return all(each["ErrorCode"] == 0 for each in answer["Responses"])


def main() -> int:
    """Measure what is asked for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kafka.partitions")
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--on", default="ours,stock")
    parser.add_argument("--version", default=DEFAULT_VERSION, help="of Kafka")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the figures to FILE")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    arguments = parser.parse_args()
    found: list[WideFigures] = []
    try:
        jars = kafka_jars(arguments.version)
        programs = JavaPrograms(jars)
        for on in arguments.on.split(","):
            with tempfile.TemporaryDirectory(
                prefix="logberg-kafka-", dir=arguments.folder
            ) as folder:
                found.append(_one(on, Path(folder), jars, programs, arguments))
            print(found[-1].said(), flush=True)
    except (KafkaError, AssertionError) as error:
        print(f"benchmarks.kafka.partitions: {error}", file=sys.stderr)
        return 1
    if arguments.page is not None:
        _write(arguments, found)
    ours = [each for each in found if each.on == "ours"]
    return int(any(each.leaderless or each.fenced or each.restarted for each in ours))


def _one(
    on: str,
    folder: Path,
    jars: Sequence[Path],
    programs: JavaPrograms,
    arguments: argparse.Namespace,
) -> WideFigures:
    if on == "ours":
        with our_controllers(folder, internal_replicas=3) as ours:
            ours.add_brokers(BROKERS, jars, _HEAP)
            return measure(ours, on, programs, arguments.partitions, arguments.replicas)
    with stock_cluster(folder, jars, BROKERS, more=_HEAP) as stock:
        return measure(stock, on, programs, arguments.partitions, arguments.replicas)


def _write(arguments: argparse.Namespace, found: Sequence[WideFigures]) -> None:
    head = (
        "| controllers | created | all led | next leader | next change | without leader | fenced | "
        "restarted |\n|---|--:|--:|--:|--:|--:|--:|--:|\n"
    )
    rows = "".join(
        f"| {'Logberg' if each.on == 'ours' else 'stock KRaft'} | {each.created_s:.1f} s "
        f"| {each.led_s:.1f} s | {each.next_leader_s:.2f} s | {each.change_s:.2f} s "
        f"| {each.leaderless} | {each.fenced} | {each.restarted} |\n"
        for each in found
    )
    sentence = f"{arguments.partitions:,} partitions with {arguments.replicas} replicas each.\n\n"
    write_part(
        arguments.page, "partitions", f"{conditions(arguments.version)} {sentence}{head}{rows}"
    )


if __name__ == "__main__":
    sys.exit(main())
