"""Refused attempts on a real quorum under faults: the log counts what callers saw.

Invariant: for each run of a controller's process, the log never counts more attempts than that
process refused. A process that lives until all is calm again has all of its attempts in the log. Of
one that died, at most those are missing that it had not reported. LOGBERG_EXAMPLES sets how many
seeds run.
"""

import os
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from controller.result import ControllerResult
from controller.trail.parts import OF_CALLERS
from controller.trail.reports import encode_report
from metadata.codec import decode_records
from metadata.errors import ErrorCode
from metadata.records import AttemptsRecord
from runtime.http.requests import Caller, Request
from runtime.simulated.process import Death
from runtime.sockets.attempts import Attempt
from tests.unit.controller.real_cluster import RealCluster

pytestmark = pytest.mark.simulation

SEEDS = int(os.environ.get("LOGBERG_EXAMPLES", "4"))
STEPS = 120
INTERVAL_S = 1.5
USERS = tuple(
    Caller(f"User:{name}", "token", f"10.0.0.{number}")
    for number, name in enumerate(("mallory", "eve", "oscar"))
)
NOBODY = Caller(address="203.0.113.1")
CODES = frozenset(code.value for code in OF_CALLERS)


class Attack:
    """A cluster that refuses, while its leaders are cut off and killed."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.cluster: Any = RealCluster(
            seed=seed,
            authorization="on",
            super_users=frozenset({"User:root"}),
            attempts_interval_s=INTERVAL_S,
        )
        self.seen: Counter[bytes] = Counter()
        """Refusals that a process answered, by its life: what its callers saw."""
        self.down: int | None = None
        self.dead: set[bytes] = set()
        self.sent: list[tuple[int, bytes]] = []
        """Reports that were under way at some time, and who sent them."""
        self.lost: dict[bytes, int] = {}
        """Of a dead process: the attempts that it had counted and not seen in its image."""

    def run(self) -> None:
        for step in range(STEPS):
            if step % 30 == 12:
                self.fault()
            if step % 30 == 24:
                self.mend()
            for _ in range(self.dice.choice((0, 1, 3, 20))):
                self.attack()
            self.repeat()
            self.cluster.run(self.dice.choice((0.0, 0.02, 0.3)))
        self.mend()
        self.cluster.settle()
        self.cluster.run(20 * INTERVAL_S)
        self.cluster.settle()

    def repeat(self) -> None:
        """Let reports come again: those under way, and old ones, as a late frame would."""
        for node, controller in sorted(self.cluster.controllers.items()):
            reporting = controller.trail.reporting
            if reporting._under_way:
                self.sent.append((node, encode_report(reporting._under_way)))
            self.cluster.processes[node].run(reporting.on_leader)
        leader = self.cluster.shared.leader
        if self.sent and leader in self.cluster.controllers and self.dice.random() < 0.3:
            node, report = self.dice.choice(self.sent)
            controller = self.cluster.controllers[leader]
            self.cluster.processes[leader].run(lambda: controller.on_contacts(node, report))

    def attack(self) -> None:
        node = self.dice.choice(sorted(self.cluster.controllers))
        life = self.cluster.controllers[node].trail.life
        kind = self.dice.random()
        if kind < 0.2:
            where, user = f"203.0.113.{self.dice.randrange(90)}", self.dice.choice("abc")
            attempt = Attempt("", "", "login", f"user:{user}", where, "UNAUTHENTICATED", "no")
            self.seen[life] += 1
            process = self.cluster.processes[node]
            process.run(lambda: self.cluster.controllers[node].note_attempt(attempt))
        elif kind < 0.6:
            name = f"t{self.dice.randrange(60)}"
            self.send(node, life, "DELETE", f"/v1/topics/{name}", self.dice.choice(USERS))
        else:
            self.send(node, life, "GET", "/v1/openapi.json", NOBODY)

    def send(self, node: int, life: bytes, method: str, path: str, caller: Caller) -> None:
        controller = self.cluster.controllers[node]

        def take(reply: Any) -> None:
            self.seen[life] += reply.status in (401, 403)

        request = Request(method, path, caller=caller)
        self.cluster.processes[node].run(lambda: controller.handle(request, take))

    def fault(self) -> None:
        leader = self.cluster.shared.leader
        if leader is None or self.down is not None:
            return
        victim = (
            leader if self.dice.random() < 0.7 else self.dice.choice(sorted(self.cluster.hosts))
        )
        self.down = victim
        others = [node for node in self.cluster.hosts if node != victim]
        if self.dice.random() < 0.4:
            self.cluster.network.cut([victim], others)
        elif victim in self.cluster.controllers:
            trail = self.cluster.controllers[victim].trail
            self.dead.add(trail.life)
            self.lost[trail.life] = sum(trail.noted.values()) - trail.reporting.written
            self.cluster.kill(victim, self.dice.choice((Death.POWER, Death.KILLED)))

    def mend(self) -> None:
        node, self.down = self.down, None
        if node is None:
            return
        self.cluster.network.heal()
        if node not in self.cluster.controllers:
            self.cluster.start(node)
        self.cluster.run_until(lambda: self.cluster.shared.leader is not None)

    def written(self) -> Counter[bytes]:
        """What the log counts, by life; each report is there once."""
        found: Counter[bytes] = Counter()
        reports: Counter[tuple[bytes, int]] = Counter()
        for batch in self.cluster.batches():
            records = [r for r in decode_records(batch.records) if isinstance(r, AttemptsRecord)]
            for record in records:
                found[record.life] += record.count
                assert record.total == found[record.life], "a report is missing, or there twice"
                assert record.code in CODES
            reports.update({(record.life, record.number) for record in records})
        assert all(times == 1 for times in reports.values())
        return found


def test_a_leader_that_forgets_what_it_wrote_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build without the rule that a report is written once."""
    monkeypatch.setattr(
        "controller.trail.writing.report_attempts",
        lambda _image, records, _sealer: ControllerResult(tuple(records)),
    )
    monkeypatch.setattr("controller.trail.writing.is_written", lambda *_: False)
    for seed in range(3):
        attack = Attack(seed)
        attack.run()
        with suppress(AssertionError):
            attack.written()
            continue
        return
    pytest.fail("no report came twice, or nobody noticed")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_log_counts_what_callers_saw(seed: int) -> None:
    attack = Attack(seed)
    attack.run()
    written = attack.written()
    living = {c.trail.life for c in attack.cluster.controllers.values()}
    for life, seen in attack.seen.items():
        if life in living:
            assert written[life] == seen, f"seed {seed}"
        else:
            missing = seen - written[life]
            assert 0 <= missing <= attack.lost[life], f"seed {seed}"
    assert set(written) <= set(attack.seen)
    assert sum(written.values()) >= 100, f"seed {seed} refuses nothing: {written}"
    assert ErrorCode.UNAUTHENTICATED in OF_CALLERS
