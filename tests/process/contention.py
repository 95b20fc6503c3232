"""Rounds of contention on real processes: nobody holds what another one holds.

    python -m tests.process.contention --rounds 200 [--clients 6] [--seed 1]

In each round something happens to a client or to the leader, and the round ends when the clients
have won so many more grants. Clients are killed, or stopped beyond their ttl and woken; leaders are
killed.

Rule: there are two judges. The log says in which order grants and writes were made: I21, by
`coordination_fold`. The clients' notes say when each believed that it held something; these times
must not overlap, whatever the log says.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from audit.places.replicas import one_replica
from logberg.local.child import Child
from logberg.local.issued_tokens import ADMIN
from metadata.codec import decode_records
from metadata.image import EMPTY
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    Record,
)
from tests.process.noted import NotedLines
from tests.process.running_cluster import PATIENCE_S, RunningCluster, running
from tests.simulation.coordination_fold import CoordinationFold

TTL_S = 1.5
GRANTS_A_ROUND = 4
ACTS = {"kill client": 3, "freeze client": 4, "kill leader": 1, "nothing": 2}
HOLDS_WITHIN_S = 3.0
FROZEN_TTLS = (1.1, 2.0)


@dataclass(frozen=True, slots=True)
class Held:
    """When a client believed that it held something, on the machine's clock."""

    kind: str
    token: int
    client: str
    since_s: float
    until_s: float


class Contention:
    """The clients of one cluster, and what happens to them."""

    def __init__(self, cluster: RunningCluster, clients: int, seed: int) -> None:
        self._cluster = cluster
        self._dice = Random(seed)
        hosts = (cluster.url(n).removeprefix("https://") for n in cluster.local.controllers)
        files = f"ca={cluster.local.file.ca}&token_file={cluster.local.token_file(ADMIN)}"
        url = f"quorum+https://{','.join(hosts)}?{files}"
        program = (sys.executable, "-m", "tests.process.contending_client")
        self._clients = [
            Child(name, [url, name, str(TTL_S)], cluster.folder / f"{name}.log", program)
            for name in (f"client-{number}" for number in range(clients))
        ]
        self._killed_s: dict[str, list[float]] = {each.name: [] for each in self._clients}
        self._notes = {each.name: NotedLines(each) for each in self._clients}
        self.counts: Counter[str] = Counter()

    def run(self, rounds: int) -> Counter[str]:
        """Run the rounds and judge them; returns what there was. Raises AssertionError."""
        try:
            for client in self._clients:
                client.start()
            for _ in range(rounds):
                self._round()
                self.counts["rounds"] += 1
        finally:
            for client in self._clients:
                self._kill(client)
        self._grants()
        self._judge_notes()
        self._cluster.until(self._cluster.settled, "all controllers serve")
        self._cluster.until(self._cluster.caught_up, "all controllers have the log")
        self._cluster.stop()
        self._judge_log()
        return self.counts

    # -- what happens --------------------------------------------------------------------------

    def _round(self) -> None:
        before = self._grants()
        act = self._dice.choices(list(ACTS), list(ACTS.values()))[0]
        self.counts[act] += 1
        client = self._dice.choice(self._clients)
        time.sleep(self._dice.uniform(0.0, 0.2))
        if act == "kill client":
            self._kill(client)
            client.start()
        elif act == "freeze client":
            self._await_holding(client)
            client.signal(signal.SIGSTOP)
            time.sleep(self._dice.uniform(*FROZEN_TTLS) * TTL_S)
            client.signal(signal.SIGCONT)
        elif act == "kill leader":
            leader = self._cluster.controller(self._cluster.leader())
            leader.kill()
            self._cluster.until(lambda: self._grants() > before, "a grant without that leader")
            leader.start()
            self._cluster.until(self._cluster.settled, "the killed controller is back")
        self._cluster.until(
            lambda: self._grants() >= before + GRANTS_A_ROUND,
            f"{GRANTS_A_ROUND} grants after: {act}",
            2 * PATIENCE_S,
        )

    def _await_holding(self, client: Child) -> None:
        """Wait until a client holds something, if that comes soon: then it is to be stopped."""
        until = time.monotonic() + HOLDS_WITHIN_S
        while not self._notes[client.name].holds and time.monotonic() < until:
            time.sleep(0.005)
            self._grants()

    def _kill(self, client: Child) -> None:
        client.kill()
        self._killed_s[client.name].append(time.clock_gettime(time.CLOCK_BOOTTIME))

    # -- what the clients say ------------------------------------------------------------------

    def _grants(self) -> int:
        for notes in self._notes.values():
            notes.read()
        return sum(notes.grants for notes in self._notes.values())

    def _held_by(self, client: Child) -> Iterator[Held]:
        """Yield what a client believed. A life that was killed believed until it was dead."""
        ends = iter(self._killed_s[client.name])
        open_: dict[str, dict[str, Any]] = {}
        killed_s = 0.0
        deadlines: dict[str, float] = {}
        for note in [*self._notes[client.name].all, {"what": "begin"}]:
            if note["what"] == "begin":
                for kind, granted in open_.items():
                    # Of one that was killed, the last deadline that it said counts.
                    until_s = min(killed_s, deadlines[kind])
                    yield _held(client, granted, until_s)
                open_.clear()
                killed_s = next(ends, 0.0)
            elif note["what"] == "granted":
                open_[note["kind"]] = note
                deadlines[note["kind"]] = note["deadline_s"]
            elif note["what"] == "over":
                yield _held(client, open_.pop(note["kind"]), note["until_s"])
            elif note["what"] == "write":
                deadlines[note["kind"]] = note["deadline_s"]
                late = "late " * note["late"]
                self.counts[f"{late}write: {note['outcome']}"] += 1
            else:
                self.counts[note["what"]] += 1

    def _judge_notes(self) -> None:
        held = [each for client in self._clients for each in self._held_by(client)]
        self.counts["grants noted"] += len(held)
        for kind in ("lock", "election"):
            line = sorted((each for each in held if each.kind == kind), key=lambda h: h.token)
            for one, other in pairwise(line):
                assert one.token < other.token, f"a token was granted twice: {one}, {other}"
                assert one.until_s <= other.since_s, f"two held it at once: {one}, {other}"

    # -- what the log says ---------------------------------------------------------------------

    def _judge_log(self) -> None:
        for n in self._cluster.local.controllers:
            fold = CoordinationFold(EMPTY.coordination, _fail)
            for records in _visible(self._cluster.data(n)):
                fold.take(records)
        self.counts.update({f"log: {name}": count for name, count in fold.counts.items()})
        assert self.counts["log: grants"] >= self.counts["grants noted"]


def _held(client: Child, granted: dict[str, Any], until_s: float) -> Held:
    return Held(granted["kind"], granted["token"], client.name, granted["since_s"], until_s)


def _visible(folder: Path) -> Iterator[list[Record]]:
    """Yield the records of a controller's log that became visible together."""
    unit: list[Record] = []
    in_transaction = False
    for batch in one_replica(str(folder)).reader().batches():
        records = list(decode_records(batch.records))
        if isinstance(records[0], BeginEpochRecord):
            unit, in_transaction = [], False
        unit += records
        in_transaction |= isinstance(records[0], BeginTransactionRecord)
        if isinstance(records[-1], EndTransactionRecord | AbortTransactionRecord):
            in_transaction = False
        if not in_transaction:
            if not isinstance(records[-1], AbortTransactionRecord):
                yield unit
            unit = []


def _fail(what: str) -> None:
    raise AssertionError(what)


def main() -> int:
    parser = argparse.ArgumentParser(description="Let processes contend for a lock and a term.")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="logberg-contention-") as folder,
        running(Path(folder) / "three") as cluster,
    ):
        counts = Contention(cluster, given.clients, given.seed).run(given.rounds)
    for name, count in sorted(counts.items()):
        print(f"{count:8} {name}")
    print(f"{time.monotonic() - began:.0f} s, and never two holders at once")
    return 0


if __name__ == "__main__":
    sys.exit(main())
