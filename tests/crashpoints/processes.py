"""Kills real controllers under load at chosen changes of their files, and starts them again.

    python -m tests.crashpoints.processes [--points N] [--record FOLDER]

Rule: the processes are the product's, started by the launcher `victim`. While one is killed, the
other two run on. After each point the killed one must start and catch up. At the end everything
acknowledged must be there, and the three folders must hold one history.
"""

import argparse
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from tests.crashpoints.steps import KINDS
from tests.evidence.pieces import write_piece
from tests.process.running_cluster import RunningCluster

SHARES = ("before", "half", "most")
ROLES = ("leader", "follower", "starting")
SMALL: dict[str, Any] = {
    "checkpoint_bytes": 40_000,
    "segment_bytes": 65_536,
    "journal_tail_bytes": 30_000,
}
"""So that all files come and go within some hundred changes."""
DIES_WITHIN_S = 60.0


class Order(NamedTuple):
    """Who dies, at which of its coming changes, and how much of a write comes through."""

    role: str
    change: int
    share: str


def orders() -> Iterator[Order]:
    """Every role in turn; places spread over more changes than a checkpoint's round has."""
    for number in count():
        role = ROLES[number % 3]
        turn = number // 3
        change = turn % 24 if role == "starting" else turn * 37 % 160
        yield Order(role, change, SHARES[turn % 3])


class Victims(RunningCluster):
    """Three controllers, each under the launcher, and a broker, so that topics have a place."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 3, 1, **SMALL)
        for n, child in self.local.controllers.items():
            launcher = [sys.executable, "-m", "tests.crashpoints.victim"]
            where = [str(self.data(n)), str(self.orders(n))]
            child._arguments = [*launcher, *where, *child._arguments[3:]]

    def orders(self, n: int) -> Path:
        """Where a controller looks for its orders."""
        return self.folder / f"orders-{n}"

    def inject(self, order: Order) -> str:
        """Let one die, and bring it back; return where it died."""
        victim = self.leader() if order.role == "leader" else self.standby()
        child = self.controller(victim)
        if order.role == "starting":
            child.kill()
        part = self.orders(victim).with_suffix(".part")
        part.write_text(f"{order.change}:{order.share}")
        part.rename(self.orders(victim))
        child.start()
        self.until(lambda: child.exit_code is not None, f"{child.name} dies", DIES_WITHIN_S)
        assert child.exit_code == -9, child.obituary()
        *_, died = re.findall(r"dies at (\S+ \S+)", self.output(child.name))
        goal = (self.status(self.leader()) or {"logEnd": 0})["logEnd"]
        child.start()
        self.until(
            lambda: (self.status(victim) or {"logEnd": -1})["logEnd"] >= goal,
            f"{child.name}, which died at {died}, has caught up",
        )
        return str(died)

    def check_at_the_end(self) -> None:
        """All is there, once, and a mere kill was nowhere taken for damage."""
        self.check_nothing_lost()
        for n in self.local.controllers:
            said = self.output(f"controller-{n}").splitlines()
            errors = [line for line in said if '"level": "error"' in line]
            assert not errors, errors


class Load:
    """Creates topics, one after another, until it is stopped."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._cluster = cluster
        self._going = True
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop, and raise what went wrong."""
        self._going = False
        self._thread.join(60.0)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            for number in count():
                if not self._going:
                    return
                self._cluster.create(f"topic-{number}")
        except BaseException as error:  # noqa: BLE001 - raised by `stop`
            self._error = error


def run(folder: Path, points: int) -> tuple[Counter[str], int]:
    """Try so many points; return where processes died, and what was acknowledged."""
    cluster = Victims(folder)
    died: Counter[str] = Counter()
    try:
        cluster.start()
        load = Load(cluster)
        for order in islice(orders(), points):
            try:
                where = cluster.inject(order)
            except AssertionError:
                load.stop()  # without a load nobody changes a file: then that is the reason
                raise
            died[where.split()[0]] += 1
            print(f"\r{died.total()} of {points}: {order.role} {where}  ", end="", file=sys.stderr)
        load.stop()
        acknowledged = len(cluster.acknowledged)
        cluster.check_at_the_end()
    finally:
        cluster.kill()
    return died, acknowledged


def main() -> int:
    parser = argparse.ArgumentParser(description="Crash points of real controllers.")
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--record", type=Path, help="write what was found into this folder")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="crashpoints-") as folder:
        died, acknowledged = run(Path(folder), given.points)
    took = time.monotonic() - began
    steps = {kind: died[kind] for kind in KINDS if died[kind]}
    print(
        f"\r{died.total()} crash points of real processes, 0 failed, {acknowledged:,} acknowledged "
        f"and there, {took:.0f} s; {', '.join(f'{kind} {n}' for kind, n in steps.items())}"
    )
    if given.record:
        figures = {"role": "real processes", "points": died.total(), "by_step": steps}
        figures |= {"violations": 0, "failed": [], "acknowledged": acknowledged}
        write_piece(given.record, "crash points", figures, took)
    return 0


if __name__ == "__main__":
    sys.exit(main())
