"""An administrator who grants and denies people topics, and erases people (rule E7).

Rule: nobody judges the answers. What came of a request is in the images that agents have.
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import JSON, Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.simulation.clients import NEAR
from tests.simulation.erasing import PEOPLE

HOST: Final = 908
NAMES: Final = tuple(f"{name}{PEOPLE}" for name in ("ann", "ben", "cleo", "dan"))
_EVERYBODY: Final = "User:*"
_PRINCIPALS: Final = (*(f"User:{name}" for name in NAMES), _EVERYBODY)
_TOPICS: Final = "topic-"
"""How the topics begin that entries are about. Rules of other administrators judge other names."""
_ACTS_PER_S: Final = 4.0
_TRY_S: Final = 2.0


class PeopleGranter:
    """One administrator, with one kind of request after another."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.facts: Counter[str] = Counter()

    def start(self) -> None:
        """Let the administrator begin."""
        cluster = self._cluster
        self._dice = cluster.world.random("people")
        host = SimulatedHost(cluster.world, cluster.network, HOST)
        self._process = host.boot()
        self._requests = cluster.requests_of(host, Caller("User:admin", "token", "10.0.0.9"))
        self._plan()

    def _plan(self) -> None:
        def go() -> None:
            if self._cluster.busy:
                what = self._dice.random()
                act = self._grant if what < 0.5 else self._revoke if what < 0.7 else self._erase
                act()
                self._plan()

        delay = int(self._dice.expovariate(_ACTS_PER_S) * US)
        self._process.schedule(delay, go, "people")

    def _grant(self) -> None:
        dice, topics = self._dice, self._topics()
        name, pattern = _TOPICS, "PREFIXED"
        if topics and dice.random() < 0.7:
            name = dice.choice(topics)
            if dice.random() < 0.5:
                name = name[:-1]
            else:
                pattern = "LITERAL"
        entry = {
            "resourceType": "TOPIC",
            "resourceName": name,
            "patternType": pattern,
            "operation": dice.choice(("DESCRIBE", "DESCRIBE", "READ", "ALL")),
            "principal": dice.choice(_PRINCIPALS),
            "host": dice.choice(("*", "*", NEAR)),
            "permissionType": dice.choice(("ALLOW", "ALLOW", "DENY")),
        }
        self._send("POST", "/v1/acls", {"acls": [entry]}, self._count("grants"))

    def _topics(self) -> list[str]:
        leader = self._cluster.leader()
        names = () if leader is None else self._cluster.controllers[leader].image.topics.names
        return [name for name in names if name.startswith(_TOPICS)]

    def _revoke(self) -> None:
        wanted = {"principal": self._dice.choice(_PRINCIPALS)}
        self._send("DELETE", "/v1/acls", {"filters": [wanted]}, self._count("revocations"))

    def _erase(self) -> None:
        name = self._dice.choice(NAMES)
        denied = {"principal": f"User:{name}", "permissionType": "DENY"}
        erased = self._count("erasures")

        def erase(_answer: Reply | Unreachable) -> None:
            self._send("POST", "/v1/erasures", {"subject": f"user:{name}"}, erased)

        # Controllers erase nobody whom an entry denies something.
        self._send("DELETE", "/v1/acls", {"filters": [denied]}, erase)

    def _count(self, what: str) -> Callable[[Reply | Unreachable], None]:
        def answered(answer: Reply | Unreachable) -> None:
            if isinstance(answer, Reply) and answer.status == 200:
                self.facts[f"people: {what}"] += 1

        return answered

    def _send(
        self, method: str, path: str, body: Any, answered: Callable[[Reply | Unreachable], None]
    ) -> None:
        leader = self._cluster.leader()
        if leader is None or self._dice.random() < 0.1:
            leader = self._dice.choice(list(self._cluster.hosts))
        wall = self._process.clock.wall_ms()
        request_id = uuid_text(uuid7(wall, self._dice.getrandbits(74)))
        headers = {"content-type": JSON, "x-logberg-request-id": request_id}
        request = Request(method, path, json.dumps(body).encode(), headers=headers)
        self._requests.request(f"http://controller-{leader}", request, answered, _TRY_S)
