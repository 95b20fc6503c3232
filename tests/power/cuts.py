"""Cuts the power of real controllers under load, each on a forgetful file system of its own.

Rule: a cut first ends all processes, then makes their file systems forget, and only then starts the
processes again. After every cut, the next leader must have everything that was acknowledged before.
At the end the three folders hold one history that verifies.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Any

from tests.power.mounting import forgetful, lose_power
from tests.process.running_cluster import RunningCluster

SMALL: dict[str, Any] = {
    "checkpoint_bytes": 40_000,
    "segment_bytes": 65_536,
    "journal_tail_bytes": 30_000,
}
"""So that files come and go all the time."""
HOW_MANY = (3, 1, 2, 3)
"""Controllers that lose power together, in turn: all, one, a majority."""
CLIENTS = 4


class Powered(RunningCluster):
    """Three controllers on forgetful folders, and a broker, so that topics have a place."""

    def __init__(self, folder: Path, *, synced: bool = True) -> None:
        super().__init__(folder, 3, 1, session_ms=9_000, **SMALL)
        for child in self.local.controllers.values():
            if not synced:
                broken = [sys.executable, "-m", "tests.power.no_sync"]
                child._arguments = [*broken, *child._arguments[3:]]

    def cut(self, nodes: list[int]) -> None:
        """Cut the power of some controllers, and give it back."""
        for n in nodes:
            self.controller(n).kill()
        for n in nodes:
            lose_power(self.data(n))
        promised = set(self.acknowledged)
        for n in nodes:
            self.controller(n).start()
        back = f"controllers {nodes} are back after a loss of power"
        self.until(self._controllers_serve, back)
        lost = promised - self.topics()
        assert not lost, f"lost with the power of controllers {nodes}: {sorted(lost)[:5]}"
        self.until(self.settled, back)
        for child in self.local.brokers.values():
            assert child.running, f"{child.name} was told that it is unknown: {child.last_words(3)}"

    def _controllers_serve(self) -> bool:
        for n, child in self.local.controllers.items():
            code = child.exit_code
            assert code is None, f"controller {n} ended with {code}: {child.last_words(20)}"
        states = [self.status(n) for n in self.local.controllers]
        return all(states) and any(state["active"] for state in states)

    def wait_for_more(self, changes: int) -> None:
        """Let so many be acknowledged."""
        goal = len(self.acknowledged) + changes
        self.until(lambda: len(self.acknowledged) >= goal, "changes go on")


class Load:
    """Clients who create topics one after another, until they are stopped."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._cluster = cluster
        self._going = True
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(client,), daemon=True)
            for client in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def abandon(self) -> None:
        """Begin nothing more."""
        self._going = False

    def stop(self) -> None:
        """Stop, and raise what went wrong."""
        self.abandon()
        for thread in self._threads:
            thread.join(60.0)
        if self._errors:
            raise self._errors[0]

    def _run(self, client: int) -> None:
        number = 0
        try:
            while self._going:
                self._cluster.create(f"topic-{client}-{number}")
                number += 1
        except BaseException as error:  # noqa: BLE001 - raised by `stop`
            self._errors.append(error)


@contextmanager
def powered(folder: Path, seed: int, *, synced: bool = True) -> Iterator[Powered]:
    """A started cluster on forgetful folders; nothing of it is left. Raises NoForgettingError."""
    cluster = Powered(folder, synced=synced)
    with ExitStack() as mounts:
        for n in cluster.local.controllers:
            mounts.enter_context(forgetful(cluster.data(n), seed * 10 + n))
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.kill()


def cut_again_and_again(cluster: Powered, cuts: int, seed: int) -> Iterator[list[int]]:
    """Cut under load, so many times; yields who it was, each time; judges at the end."""
    dice = Random(seed)
    load = Load(cluster)
    try:
        for _, together in zip(range(cuts), cycle(HOW_MANY), strict=False):
            cluster.wait_for_more(dice.randint(1, 30))
            nodes = sorted(dice.sample(list(cluster.local.controllers), together))
            cluster.cut(nodes)
            yield nodes
        load.stop()
    finally:
        load.abandon()
    cluster.check_nothing_lost()
