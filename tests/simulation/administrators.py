"""Clients that change and read. They retry with the same request id and remember the answers.

Rule: a client trusts only answers. A change without an answer has an unknown outcome until the
client asks again with the same id. In the end every acknowledged change must be in the log once.
"""

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from metadata.uuids import parse_uuid, uuid7, uuid_text
from runtime.http.requests import Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.checkers.history import CREATE, DELETE, LIST

TRIES = 12


@dataclass
class Change:
    """One change, through all its tries."""

    request_id: str
    topic: str
    delete: bool
    tries: int = 0
    offset: int | None = None
    """Where it was acknowledged."""
    operation: Any = None
    """What the judges will see of it."""


@dataclass
class Counts:
    acknowledged: int = 0
    refused: int = 0
    unknown: int = 0
    reads: int = 0
    retries: int = 0
    throttled: int = 0


def out_of_time(answer: Reply) -> bool:
    """Return whether a leader's clock, a day off, makes it refuse a retry."""
    codes = ("REQUEST_EXPIRED", "REQUEST_FROM_FUTURE")
    return answer.status in {400, 409} and json.loads(answer.body)["code"] in codes


@dataclass
class Administrators:
    cluster: Any
    host_id: int
    counts: Counts = field(default_factory=Counts)
    acknowledged: dict[str, Change] = field(default_factory=dict)
    highest_seen: int = 0
    """The highest offset that any client was told: later linearizable reads must not be below."""
    exists: dict[str, bool] = field(default_factory=dict)
    correction_ms: int = 0
    """What is added to our clock for request ids."""
    under_way: dict[str, Change] = field(default_factory=dict)
    """Sent, and neither answered nor given up."""

    def start(self) -> None:
        cluster = self.cluster
        self.dice = cluster.world.random("administrators")
        self.host = SimulatedHost(cluster.world, cluster.network, self.host_id)
        self.process = self.host.boot()
        caller = Caller("User:admin", "token", "10.0.0.9")
        self.requests = cluster.requests_of(self.host, caller)
        self.number = 0
        self._plan(cluster.shape.changes_per_s, self._change)
        self._plan(cluster.shape.reads_per_s, self._read)

    def _plan(self, rate: float, act: Callable[[], None]) -> None:
        def go() -> None:
            if self.cluster.busy:
                act()
            delay = int(self.dice.expovariate(rate) * US)
            self.process.schedule(delay, go, "administrator")

        self.process.schedule(0, go, "administrator")

    def _url(self) -> str:
        leader = self.cluster.leader()
        if leader is None or self.dice.random() < 0.1:
            leader = self.dice.choice(list(self.cluster.hosts))
        return f"http://controller-{leader}"

    # -- changes ------------------------------------------------------------------------------

    def _change(self) -> None:
        self.number += 1
        wall = self.process.clock.wall_ms() + self.correction_ms
        request_id = uuid_text(uuid7(wall, self.dice.getrandbits(74)))
        known = [name for name, there in self.exists.items() if there]
        full = len(known) >= self.cluster.shape.topics_max
        if known and (full or self.dice.random() < 0.3):
            name = self.dice.choice(known)
            self.exists[name] = False
            self._send(Change(request_id, name, delete=True))
        else:
            self._send(Change(request_id, f"topic-{self.number}", delete=False))

    def _send(self, change: Change) -> None:
        change.tries += 1
        self.under_way[change.request_id] = change
        if change.operation is None:
            change.operation = self.cluster.answers.asked(
                DELETE if change.delete else CREATE,
                "administrator",
                topic=change.topic,
                request_id=parse_uuid(change.request_id).hex(),
            )
        headers = {
            "content-type": "application/json",
            "x-logberg-request-id": change.request_id,
            "x-logberg-reason": "simulation",
        }
        if change.delete:
            request = Request("DELETE", f"/v1/topics/{change.topic}", headers=headers)
        else:
            partitions = 1 + len(change.topic) % 4
            every = self.cluster.shape.large_topics
            if every and zlib.crc32(change.topic.encode()) % every == 0:
                partitions = 12
            factor = 3 if self.cluster.shape.replicated else 1
            topic = {"name": change.topic, "numPartitions": partitions}
            body = {"topics": [{**topic, "replicationFactor": factor}]}
            request = Request("POST", "/v1/topics", json.dumps(body).encode(), headers=headers)
        self.requests.request(
            self._url(), request, lambda answer: self._answered(change, answer), 2.0
        )

    def _answered(self, change: Change, answer: Reply | Unreachable) -> None:
        self.under_way.pop(change.request_id, None)
        if isinstance(answer, Reply) and answer.status == 200:
            self._done(change, json.loads(answer.body))
            return
        if isinstance(answer, Reply) and out_of_time(answer):
            # Outcomes are remembered for a day: what an earlier try came to isn't known.
            self.counts.unknown += 1
            self._correct_clock(json.loads(answer.body)["code"])
            return
        if isinstance(answer, Reply) and (answer.status == 400 or self._is_led(answer)):
            self._refused(change, json.loads(answer.body)["code"])
            return
        if isinstance(answer, Reply) and answer.status not in {421, 429, 503, 507}:
            self.cluster.world.fail(
                f"a change was answered {answer.status}: {answer.body[:300]!r}", None
            )
        if change.tries >= TRIES:
            self.counts.unknown += 1
            return
        self.counts.retries += 1
        again = int(self.dice.uniform(0.05, 0.6) * US)
        if isinstance(answer, Reply) and answer.status == 429:
            self.counts.throttled += 1
            again = max(again, json.loads(answer.body)["retryAfterMs"] * 1000)
        self.process.schedule(again, lambda: self._send(change), "retry")

    def _is_led(self, answer: Reply) -> bool:
        """Return whether topics can't be changed here, because the source of a bridge leads."""
        leads = self.cluster.shape.bridged and answer.status == 409
        return leads and json.loads(answer.body)["code"] == "SOURCE_LEADS"

    def _correct_clock(self, code: str) -> None:
        """Draw the next ids by the leader's time when ours is ahead, as its answer advises."""
        leader = self.cluster.leader()
        self.correction_ms = 0
        if code == "REQUEST_FROM_FUTURE" and leader is not None:
            offset_us = self.cluster.hosts[leader].machine.wall_offset_us
            self.correction_ms = min(0, offset_us // 1000)

    def _done(self, change: Change, reply: dict[str, Any]) -> None:
        error = reply["topics"][0]["error"]
        if error is not None:
            self._refused(change, error["code"])
            return
        self.cluster.answers.changed(change.operation, reply)
        self.counts.acknowledged += 1
        change.offset = reply["offset"]
        self.highest_seen = max(self.highest_seen, reply["offset"])
        self.acknowledged[change.request_id] = change
        self.exists[change.topic] = not change.delete

    def _refused(self, change: Change, code: str) -> None:
        """A cluster without brokers, or that follows a source, refuses topics; else nothing may be.

        With one request id through all tries a topic can't exist already, nor be gone.
        """
        self.cluster.answers.refused(change.operation, code)
        self.counts.refused += 1
        if code not in ("INVALID_REPLICATION_FACTOR", "SOURCE_LEADS"):
            self.cluster.world.fail(f"I9: {change} was refused with {code}", None)

    # -- reads --------------------------------------------------------------------------------

    def _read(self) -> None:
        must_see = self.highest_seen
        operation = self.cluster.answers.asked(LIST, "administrator")
        request = Request("GET", "/v1/topics")

        def answered(answer: Reply | Unreachable) -> None:
            if not isinstance(answer, Reply) or answer.status != 200:
                return
            self.counts.reads += 1
            reply = json.loads(answer.body)
            self.cluster.answers.read(operation, reply)
            seen = reply["offset"]
            if seen < must_see:
                self.cluster.world.fail(
                    f"I7: a linearizable read saw offset {seen} after {must_see} was told", None
                )
            self.highest_seen = max(self.highest_seen, seen)

        self.requests.request(self._url(), request, answered, 2.0)
