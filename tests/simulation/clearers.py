"""An administrator who creates some topics together and deletes them in one request.

The deletion is written in rounds of one topic, and leaders fail between them. Rule: with one
request id through all tries, the answer is that of one execution. Each topic is told to be deleted,
with the id that it was created with, whichever leader deleted it. A name that nobody created is
told to be unknown. In the end, no topic is there that was told to be deleted.
"""

import json
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from metadata.uuids import parse_uuid, uuid7, uuid_text
from runtime.http.requests import JSON, Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.simulation.administrators import out_of_time

CLEARER_HOST = 904
_TOPICS = 8
_PAUSE_S = 0.4
_TRY_S = 2.0
_TRIES = 12


class Clearers:
    """One client, with one request at a time."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._number = 0
        self.counts: Counter[str] = Counter()
        self.asked: set[str] = set()
        """The ids of all requests, in hexadecimal: they are about several topics."""
        self._gone: set[str] = set()
        """Topics that were told to be deleted."""

    def start(self) -> None:
        """Let it begin."""
        cluster = self._cluster
        self._dice: Random = cluster.world.random("clearer")
        host = SimulatedHost(cluster.world, cluster.network, CLEARER_HOST)
        self._process = host.boot()
        self._requests = host.requests(Caller("User:admin", "token", "10.0.0.8"))
        self._soon()

    def _soon(self) -> None:
        delay = int(self._dice.uniform(0, 2 * _PAUSE_S) * US)
        self._process.schedule(delay, self._begin, "clearer")

    def _begin(self) -> None:
        if not self._cluster.busy:
            self._soon()
            return
        self._number += 1
        names = [f"together-{self._number}-{n}" for n in range(_TOPICS)]
        topics = [{"name": n, "numPartitions": 1, "replicationFactor": 1} for n in names]

        def created(reply: dict[str, Any]) -> None:
            ids = {t["name"]: t["topicId"] for t in reply["topics"] if t["error"] is None}
            self._clear(names, ids)

        self._send("POST", {"topics": topics}, created)

    def _clear(self, names: list[str], ids: dict[str, str]) -> None:
        wanted = [names[0], "nobody-made-it", *names[1:]]

        def cleared(reply: dict[str, Any]) -> None:
            for name, told in zip(wanted, reply["topics"], strict=True):
                error = told["error"]
                if name not in ids:
                    right = error is not None and error["code"] == "UNKNOWN_TOPIC_OR_PARTITION"
                else:
                    right = error is None and told["topicId"] == ids[name]
                if not right:
                    self._cluster.world.fail(f"I9: of {name}, {ids.get(name)}: told {told}", None)
            self._gone |= set(ids)
            self.counts["topics cleared"] += len(ids)
            self._soon()

        self._send("DELETE", {"names": wanted}, cleared)

    def _send(
        self, method: str, message: dict[str, Any], done: Callable[[dict[str, Any]], None]
    ) -> None:
        wall = self._process.clock.wall_ms()
        request_id = uuid_text(uuid7(wall, self._dice.getrandbits(74)))
        self.asked.add(parse_uuid(request_id).hex())
        headers = {"content-type": JSON, "x-logberg-request-id": request_id}
        request = Request(method, "/v1/topics", json.dumps(message).encode(), headers=headers)
        self._try(request, done, 1)

    def _try(self, request: Request, done: Callable[[dict[str, Any]], None], tries: int) -> None:
        def answered(answer: Reply | Unreachable) -> None:
            status = answer.status if isinstance(answer, Reply) else 503
            if isinstance(answer, Reply) and status == 200:
                self.counts["requests repeated"] += tries > 1
                done(json.loads(answer.body))
            elif isinstance(answer, Reply) and status not in (421, 429, 503, 507):
                if not out_of_time(answer):
                    self._cluster.world.fail(f"I9: a clearer was told {answer.body!r}", None)
                self._soon()
            elif tries < _TRIES:
                again = int(self._dice.uniform(0.05, 0.5) * US)
                self._process.schedule(
                    again, lambda: self._try(request, done, tries + 1), "clearer"
                )
            else:
                self.counts["given up"] += 1
                self._soon()

        leader = self._cluster.leader() or self._dice.choice(list(self._cluster.hosts))
        self._requests.request(f"http://controller-{leader}", request, answered, _TRY_S)

    def judge(self, names: Any) -> Counter[str]:
        """Compare what was told with the topics that there are in the end. Returns the counts."""
        back = sorted(self._gone & set(names))
        if back:
            self._cluster.world.fail(f"I9: told to be deleted, and there: {back}", None)
        return self.counts
