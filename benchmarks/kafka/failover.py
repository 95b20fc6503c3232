"""Our leader is struck every 20 s while Kafka's clients work; stock KRaft beside it.

    python -m benchmarks.kafka.failover [--minutes 10] [--fault kill] [--on ours,stock]
                                        [--version 4.3.1] [--every 20] [--folder DIR]
                                        [--runs FILE] [--page FILE]

Three controllers and three real brokers on loopback. Clients produce 200 messages a second with
acks=all, consume them in a group, and change a config five times a second through a broker. Exit 1
if ours lost an acknowledged message or change, or if a broker was fenced or restarted. `--runs`
adds each run to a file, and the page shows all runs of that file.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.kafka.failover_page import FaultRun, add_run, conditions, read_runs, write_page
from logberg.kafka.jars import DEFAULT_VERSION, kafka_jars
from logberg.kafka.kafka_error import KafkaError
from tests.kafka.faults.run import RunFailedError, struck_run
from tests.kafka.faults.striking import (
    CutLeader,
    Fault,
    FullDisk,
    KilledLeader,
    NoSmallDiskError,
    PausedLeader,
    small_disks,
)
from tests.kafka.faults.verdict import FaultVerdict
from tests.kafka.jvm.programs import JavaPrograms
from tests.kafka.our_controllers import OurControllers, our_controllers
from tests.kafka.stock_kraft import stock_cluster

BROKERS = 3
FAULTS = ("kill", "pause", "cut", "disk")
ON_STOCK = ("kill", "pause")
"""The others need our controllers: relays between them, and a reserve on their disks."""


def main() -> int:
    """Run what is asked for; return the exit code."""
    arguments = _arguments()
    runs: list[FaultRun] = []
    try:
        jars = kafka_jars(arguments.version, say=_say)
        programs = JavaPrograms(jars)
        for fault in arguments.fault:
            runs += [
                _run(arguments, fault, on, jars, programs)
                for on in arguments.on
                if on == "ours" or fault in ON_STOCK
            ]
    except (KafkaError, RunFailedError, NoSmallDiskError, AssertionError) as error:
        print(f"benchmarks.kafka.failover: {error}", file=sys.stderr)
        return 1
    for run in runs:
        print(run.said())
    if arguments.page is not None:
        write_page(arguments.page, runs if arguments.runs is None else read_runs(arguments.runs))
    problems = [problem for run in runs if run.on == "ours" for problem in run.found.problems()]
    for problem in problems:
        print(f"missed: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _run(
    arguments: argparse.Namespace,
    fault: str,
    on: str,
    jars: Sequence[Path],
    programs: JavaPrograms,
) -> FaultRun:
    """Make one run in a folder of its own."""
    _say(f"{fault} on {on}, {arguments.minutes} minutes")
    with tempfile.TemporaryDirectory(prefix="logberg-kafka-", dir=arguments.folder) as folder:
        place = Path(folder)
        make = _on_ours if on == "ours" else _on_stock
        found = make(arguments, fault, place, jars, programs)
    run = FaultRun(fault, on, arguments.minutes, found, conditions(arguments.version))
    if arguments.runs is not None:
        add_run(arguments.runs, run)
    _say(run.said())
    return run


def _on_ours(
    arguments: argparse.Namespace,
    fault: str,
    folder: Path,
    jars: Sequence[Path],
    programs: JavaPrograms,
) -> FaultVerdict:
    with our_controllers(
        folder,
        small_disks(folder) if fault == "disk" else None,
        relays=fault == "cut",
        internal_replicas=3,
    ) as cluster:
        cluster.add_brokers(BROKERS, jars)
        return struck_run(
            cluster,
            _OURS[fault](cluster),
            programs,
            folder,
            minutes=arguments.minutes,
            every_s=arguments.every,
            say=_say,
        )


_OURS: dict[str, Callable[[OurControllers], Fault]] = {
    "kill": KilledLeader,
    "pause": lambda _cluster: PausedLeader(),
    "cut": CutLeader,
    "disk": FullDisk,
}


def _on_stock(
    arguments: argparse.Namespace,
    fault: str,
    folder: Path,
    jars: Sequence[Path],
    programs: JavaPrograms,
) -> FaultVerdict:
    with stock_cluster(folder, jars, BROKERS) as cluster:
        return struck_run(
            cluster,
            KilledLeader(cluster) if fault == "kill" else PausedLeader(),
            programs,
            folder,
            minutes=arguments.minutes,
            every_s=arguments.every,
            say=_say,
        )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kafka.failover",
        description="Strike our leader while Kafka's clients work; stock KRaft beside it.",
    )
    parser.add_argument("--minutes", type=float, default=10.0, help="of each run")
    parser.add_argument("--every", type=float, default=20.0, help="seconds between two faults")
    parser.add_argument("--fault", type=_words(FAULTS), default=["kill"], help=", ".join(FAULTS))
    parser.add_argument("--on", type=_words(("ours", "stock")), default=["ours", "stock"])
    parser.add_argument("--version", default=DEFAULT_VERSION, help="of Kafka")
    parser.add_argument("--runs", type=Path, metavar="FILE", help="add each run to FILE")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the figures to FILE")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    return parser.parse_args()


def _words(known: Sequence[str]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        words = text.split(",")
        unknown = [word for word in words if word not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r}: use {', '.join(known)}")
        return words

    return parse


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
