"""`python -m benchmarks.coordination`: coordination on Logberg, etcd and ZooKeeper, in turns.

    python -m benchmarks.coordination [--only PIECE] [--store NAME] [--quick] [--folder DIR]
                                      [--clients N] [--watches N] [--seconds S]
                                      [--json FILE]

Three pieces: `killed` and `resigned` are hand-overs of an election, `crowd` is 1,000 sessions with
10,000 watches. Each store begins each piece afresh. Exit 1 when a bound of `judging` is missed.
etcd and ZooKeeper come as for `make bench-peers`; without them only ours is measured.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks.coordination.crowd import measure_crowd
from benchmarks.coordination.hand_over import measure_killed, measure_resigned
from benchmarks.coordination.judging import CROWD, KILLED, PIECES, RESIGNED, missed
from benchmarks.coordination.page import table
from benchmarks.coordination.quiet_log import log_only_warnings
from benchmarks.coordination.stores import STORES, RunningStore, running_store
from benchmarks.peers.tools import NoToolError


def main() -> int:
    """Measure what is asked for; return the exit code."""
    given = _arguments()
    log_only_warnings()
    # As an installed package has: without bytecode a start compiles every module anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    measured: dict[str, dict[str, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="logberg-coordination-", dir=given.folder) as folder:
        for piece in given.only or PIECES:
            for name in given.store or STORES:
                try:
                    with running_store(name, Path(folder)) as store:
                        figures = asyncio.run(_measure(piece, store, given, Path(folder)))
                except NoToolError as error:
                    print(f"{name}: not run: {error}", file=sys.stderr)
                    continue
                said = ", ".join(f"{key} {value:.4g}" for key, value in figures.items())
                print(f"{piece}, {name}: {said}", file=sys.stderr, flush=True)
                measured.setdefault(piece, {})[name] = figures
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the end\n")
    print(table(measured))
    if given.json is not None:
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=1) + b"\n")
    return 1 if any(missed(measured)) else 0


async def _measure(
    piece: str, store: RunningStore, given: argparse.Namespace, folder: Path
) -> dict[str, float]:
    quick = given.quick
    if piece == KILLED:
        return await measure_killed(store, 3 if quick else 20, random.Random(1))
    if piece == RESIGNED:
        return await measure_resigned(store, 5 if quick else 50)
    clients = given.clients or (50 if quick else 1000)
    seconds = given.seconds or (3 if quick else 60)
    return await measure_crowd(store, clients, given.watches, seconds, folder)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.coordination", description="Coordination on three stores."
    )
    parser.add_argument("--only", action="append", choices=PIECES, help="only this piece")
    parser.add_argument("--store", action="append", choices=STORES, help="only this store")
    parser.add_argument("--quick", action="store_true", help="a short run: whether it works")
    parser.add_argument("--clients", type=int, help=f"of the {CROWD} (1000)")
    parser.add_argument("--watches", type=int, default=10, help="of each of its clients (10)")
    parser.add_argument("--seconds", type=float, help=f"of the {CROWD} (60)")
    parser.add_argument("--folder", type=Path, help="a folder on the disk to measure")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
