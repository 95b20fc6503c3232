"""Rivals: clients that create and delete the same few topics, and use every kind of read.

Rule: each has one request at a time. A refusal because a topic exists, or doesn't, is an answer
like any other. Only rivals use these names, so nobody else can make such an answer false. Where the
cluster's shape says so, most changes are conditional on the offset of the last answer.
"""

import json
from functools import partial
from random import Random
from typing import Any

from metadata.uuids import parse_uuid, uuid7, uuid_text
from runtime.http.requests import Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.checkers.history import (
    AT_LEAST,
    CREATE,
    DELETE,
    EXISTS,
    LIST,
    STALE,
    STALE_CONDITION,
    UNKNOWN_TOPIC,
)
from tests.simulation.administrators import out_of_time

RIVAL_HOST = 901
NAMES = ("rival-0", "rival-1", "rival-2")
TRIES = 5
SAYS_NOTHING = {421, 429, 503, 507}
"""Statuses after which a request may or may not take effect; it is tried again."""


class Rival:
    """One client, request after request."""

    def __init__(self, rivals: "Rivals", number: int) -> None:
        self._rivals = rivals
        self._name = f"rival {number}"
        self._dice: Random = rivals.cluster.world.random(self._name)
        self._told = self._read_at = 0

    def go_on(self) -> None:
        """Do something, in a while."""
        delay = int(self._dice.expovariate(4.0) * US)
        self._rivals.process.schedule(delay, self._act, "rival")

    def _act(self) -> None:
        if not self._rivals.cluster.busy:
            self.go_on()
            return
        kinds, weights = (CREATE, DELETE, LIST, STALE, AT_LEAST), (5, 4, 4, 4, 2)
        kind = self._dice.choices(kinds, weights)[0]
        if kind in (CREATE, DELETE):
            self._change(kind)
        else:
            self._read(kind)

    def _change(self, kind: str) -> None:
        wall = self._rivals.process.clock.wall_ms()
        request_id = uuid_text(uuid7(wall, self._dice.getrandbits(74)))
        topic = self._dice.choice(NAMES)
        operation = self._rivals.cluster.answers.asked(
            kind, self._name, topic=topic, request_id=parse_uuid(request_id).hex()
        )
        headers = {"content-type": "application/json", "x-logberg-request-id": request_id}
        if self._rivals.cluster.shape.conditional and self._dice.random() < 0.7:
            operation.expected = self._read_at
            headers["x-logberg-expect-offset"] = str(self._read_at)
        if kind == DELETE:
            request = Request("DELETE", f"/v1/topics/{topic}", headers=headers)
        else:
            partitions = self._dice.randint(1, 3)
            wanted = {"name": topic, "numPartitions": partitions, "replicationFactor": 1}
            body = json.dumps({"topics": [wanted]}).encode()
            request = Request("POST", "/v1/topics", body, headers=headers)
        self._try(operation, request, 1)

    def _try(self, operation: Any, request: Request, tries: int) -> None:
        def answered(answer: Reply | Unreachable) -> None:
            if isinstance(answer, Reply) and answer.status not in SAYS_NOTHING:
                self._take(operation, answer)
            elif tries < TRIES:
                later = int(self._dice.uniform(0.02, 0.4) * US)
                again = partial(self._try, operation, request, tries + 1)
                self._rivals.process.schedule(later, again, "rival-again")
                return
            self.go_on()

        self._rivals.requests.request(self._url(), request, answered, 2.0)

    def _take(self, operation: Any, answer: Reply) -> None:
        cluster, reply = self._rivals.cluster, json.loads(answer.body)
        if out_of_time(answer):
            return
        error = reply if answer.status != 200 else reply["topics"][0]["error"]
        if error is None:
            cluster.answers.changed(operation, reply)
            self._told = self._read_at = reply["offset"]
            return
        offset = reply.get("offset", -1)
        cluster.answers.refused(operation, error["code"], offset if offset >= 0 else None)
        may_be = [EXISTS, UNKNOWN_TOPIC, "INVALID_REPLICATION_FACTOR"]
        if operation.expected is not None:
            may_be.append(STALE_CONDITION)
        if error["code"] not in may_be:
            cluster.world.fail(f"I9: {operation} was refused: {error}", None)

    def _read(self, kind: str) -> None:
        asked = self._told if kind == AT_LEAST else 0
        operation = self._rivals.cluster.answers.asked(kind, self._name, asked=asked)
        query = {STALE: {"consistency": "stale"}, AT_LEAST: {"minOffset": str(asked)}}
        request = Request("GET", "/v1/topics", query=query.get(kind, {}))

        def answered(answer: Reply | Unreachable) -> None:
            if isinstance(answer, Reply) and answer.status == 200:
                reply = json.loads(answer.body)
                self._rivals.cluster.answers.read(operation, reply)
                self._read_at = reply["offset"]
            self.go_on()

        url = self._url() if kind == LIST else self._any_url()
        self._rivals.requests.request(url, request, answered, 2.0)

    def _url(self) -> str:
        leader = self._rivals.cluster.leader()
        if leader is None or self._dice.random() < 0.2:
            return self._any_url()
        return f"http://controller-{leader}"

    def _any_url(self) -> str:
        return f"http://controller-{self._dice.choice(list(self._rivals.cluster.hosts))}"


class Rivals:
    """Several of them, on one machine."""

    def __init__(self, cluster: Any, count: int) -> None:
        self.cluster = cluster
        self._count = count

    def start(self) -> None:
        """Let them begin."""
        host = SimulatedHost(self.cluster.world, self.cluster.network, RIVAL_HOST)
        self.process = host.boot()
        caller = Caller("User:rival", "certificate", "10.0.0.8")
        self.requests = self.cluster.requests_of(host, caller)
        for number in range(self._count):
            Rival(self, number).go_on()
