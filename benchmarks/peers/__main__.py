"""`make bench-peers`: Logberg, etcd, ZooKeeper and KRaft in turns; exit 1 when a bound is missed.

    python -m benchmarks.peers [--only ROW] [--service NAME] [--rounds N] [--quick]
                               [--json FILE] [--page FILE] [--picture FILE]

The services run one after another in each round, each on a fresh cluster for each group of rows.
"""

import argparse
import datetime as dt
import os
import platform
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks.peers.driving import Driver, LoadError
from benchmarks.peers.judging import Rounds, Run, judge
from benchmarks.peers.page import picture, table
from benchmarks.peers.rows import BOUNDS, GROUPS, ROWS, Row
from benchmarks.peers.services import NODES_OF, Service
from benchmarks.peers.tools import NoToolError


def main() -> int:
    """Measure what is asked for; return the exit code."""
    arguments = _arguments()
    # As an installed package has: without bytecode a start compiles every module anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    rounds: Rounds = {}
    try:
        driver = Driver(quick=arguments.quick)
        with tempfile.TemporaryDirectory(prefix="logberg-peers-", dir=arguments.folder) as folder:
            for number in range(1 if arguments.quick else arguments.rounds):
                print(f"round {number + 1}", file=sys.stderr, flush=True)
                _one_round(driver, Path(folder), arguments, rounds)
    except NoToolError as error:
        print(f"bench-peers: {error}", file=sys.stderr)
        return 1
    run = Run(_machine(), rounds)
    print(table(run))
    if arguments.json is not None:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")
    if arguments.page is not None:
        arguments.page.write_text(table(run))
    if arguments.picture is not None:
        arguments.picture.write_text(picture(run) + "\n")
    return 0 if all(judged.met for judged in judge(run, BOUNDS)) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description="Logberg beside its peers, in one run."
    )
    keys = [row.key for row in ROWS]
    parser.add_argument(
        "--only", action="append", choices=keys, metavar="ROW", help=", ".join(keys)
    )
    parser.add_argument("--service", action="append", choices=[*NODES_OF], help="only this one")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one short round: whether it works")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every round to FILE")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table to FILE")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="write the picture to FILE")
    return parser.parse_args()


def _one_round(driver: Driver, folder: Path, arguments: argparse.Namespace, rounds: Rounds) -> None:
    for group, rows in GROUPS.items():
        wanted = [row for row in rows if not arguments.only or row.key in arguments.only]
        for name in arguments.service or NODES_OF:
            mine = [row for row in wanted if name in row.services]
            if mine:
                _one_cluster(
                    driver, name, folder / f"{name}-{group.replace(' ', '-')}", mine, rounds
                )


def _one_cluster(driver: Driver, name: str, folder: Path, rows: list[Row], rounds: Rounds) -> None:
    service = Service(name, folder)
    try:
        service.start(driver.find_leader)
        for row in rows:
            try:
                measured = dict(row.measure(driver, service))
            except LoadError as error:
                # The other rows still count. This one has no figure, and the page shows that.
                print(f"  {row.what}: {error}", file=sys.stderr, flush=True)
                measured = {}
            said = ", ".join(f"{key} {value:.4g}" for key, value in measured.items())
            print(f"  {name}: {row.what}: {said}", file=sys.stderr, flush=True)
            rounds.setdefault(row.key, {}).setdefault(name, []).append(measured)
    finally:
        service.stop()


def _machine() -> str:
    today = dt.datetime.now(dt.UTC).strftime("%-d %B %Y")
    return (
        f"{today}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, load average {os.getloadavg()[0]:.1f} at the end"
    )


if __name__ == "__main__":
    sys.exit(main())
