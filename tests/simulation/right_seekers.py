"""Users who change topics while somebody grants and revokes their rights (ADR 0092).

- R1: no batch is committed for a user whom the state before it refuses (`rights_fold`).
- R2: at rest, a user is served exactly what the entries allow: changes, also old requests that are
  repeated with their ids, and lists.

Rule: the users work on names of their own (`r-…`), so that nobody else's checks meet them.
Everybody else in the cluster is a super user, and brokers show certificates.
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from metadata.uuids import parse_uuid, uuid7, uuid_text
from runtime.http.requests import JSON, Caller, Reply, Request, Unreachable, whole
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.simulation.rights_fold import RightsFold

HOST: Final = 940
GRANTER: Final = Caller("User:admin", "token", "10.0.0.9")
USERS: Final = tuple(Caller(f"User:{name}", "token", "10.0.0.7") for name in ("alice", "bob"))
SUPER_USERS: Final = frozenset({"User:admin"})
NAMES: Final = ("r-a", "r-ab", "r-abc", "r-b", "r-bc")
_ACTS_PER_S: Final = 5.0
_TRY_S: Final = 2.0
_TRIES: Final = 4
_AT_REST_S: Final = 20.0
_REFUSED: Final = 403
OnAnswer = Callable[[Reply | Unreachable], None]


class Asked(NamedTuple):
    """One request of a user, which may be sent again."""

    caller: Caller
    request: Request
    operation: str
    name: str


class RightSeekers:
    """Two users, and who grants."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.facts: Counter[str] = Counter()
        self._done: list[Asked] = []
        """Requests that were answered with 200."""
        self.asked: set[str] = set()
        """The ids of all requests."""

    def start(self) -> None:
        """Let them begin."""
        cluster = self._cluster
        self._dice = cluster.world.random("rights")
        host = SimulatedHost(cluster.world, cluster.network, HOST)
        self._process = host.boot()
        self._requests = {
            caller.principal: cluster.requests_of(host, caller) for caller in (GRANTER, *USERS)
        }
        for act in (self._grant, self._revoke, *(lambda who=who: self._use(who) for who in USERS)):
            self._plan(act)

    def _plan(self, act: Callable[[], None]) -> None:
        def go() -> None:
            if self._cluster.busy:
                act()
            delay = int(self._dice.expovariate(_ACTS_PER_S) * US)
            self._process.schedule(delay, go, "rights")

        self._process.schedule(0, go, "rights")

    # -- who grants ---------------------------------------------------------------------------

    def _grant(self) -> None:
        dice = self._dice
        name = dice.choice((*NAMES, "*"))
        entry = {
            "resourceType": "TOPIC",
            "resourceName": name,
            "patternType": "LITERAL",
            "operation": dice.choice(
                ("CREATE", "DELETE", "ALTER", "ALTER_CONFIGS", "DESCRIBE", "ALL")
            ),
            "principal": dice.choice(("User:alice", "User:bob", "User:*")),
            "host": dice.choice(("*", "*", "10.0.0.7", "10.9.9.9")),
            "permissionType": dice.choice(("ALLOW", "ALLOW", "ALLOW", "DENY")),
        }
        if name != "*" and dice.random() < 0.3:
            entry["patternType"] = "PREFIXED"
        if dice.random() < 0.1:
            entry |= {"resourceType": "CLUSTER", "resourceName": "kafka-cluster"}
            entry |= {"patternType": "LITERAL", "operation": dice.choice(("CREATE", "ALTER"))}
        self._send(GRANTER, "POST", "/v1/acls", {"acls": [entry]}, "", "")

    def _revoke(self) -> None:
        wanted = {"principal": self._dice.choice(("User:alice", "User:bob", "User:*"))}
        if self._dice.random() < 0.7:
            wanted["resourceName"] = self._dice.choice((*NAMES, "*"))
        self._send(GRANTER, "DELETE", "/v1/acls", {"filters": [wanted]}, "", "")

    # -- users --------------------------------------------------------------------------------

    def _use(self, caller: Caller) -> None:
        dice, name = self._dice, self._dice.choice(NAMES)
        old = [each for each in self._done if each.caller is caller]
        what = dice.random()
        if old and what < 0.15:
            # An old answer may be recalled only for whom it is still allowed.
            self._try(dice.choice(old), _TRIES)
        elif what < 0.5:
            # Many partitions are prepared beside other changes.
            count = dice.choice((1, 1, 3, 40))
            topic = {"name": name, "numPartitions": count, "replicationFactor": 1}
            self._send(caller, "POST", "/v1/topics", {"topics": [topic]}, "CREATE", name)
        elif what < 0.7:
            self._send(caller, "DELETE", "/v1/topics", {"names": [name]}, "DELETE", name)
        elif what < 0.8:
            more = {"topics": [{"name": name, "count": dice.randint(2, 60)}]}
            self._send(caller, "POST", "/v1/partitions", more, "ALTER", name)
        elif what < 0.95:
            config = {"name": "retention.ms", "value": str(dice.randint(1, 9) * 10_000)}
            path = f"/v1/configs/topic/{name}"
            self._send(caller, "PATCH", path, {"configs": [config]}, "ALTER_CONFIGS", name)
        else:
            mine = {"resourceType": "TOPIC", "resourceName": name, "operation": "ALL"}
            body = {"acls": [mine | {"principal": caller.principal}]}
            self._send(caller, "POST", "/v1/acls", body, "", "")

    def _send(
        self, caller: Caller, method: str, path: str, body: Any, operation: str, name: str
    ) -> None:
        wall = self._process.clock.wall_ms()
        request_id = uuid_text(uuid7(wall, self._dice.getrandbits(74)))
        self.asked.add(parse_uuid(request_id).hex())
        headers = {"content-type": JSON, "x-logberg-request-id": request_id}
        request = Request(method, path, json.dumps(body).encode(), headers=headers)
        self._try(Asked(caller, request, operation, name), _TRIES)

    def _try(self, asked: Asked, tries: int) -> None:
        """Send a request, and again with the same id while nobody knows what came of it."""

        def answered(answer: Reply | Unreachable) -> None:
            status = answer.status if isinstance(answer, Reply) else 0
            self.facts[f"rights: {status or 'no answer'}"] += 1
            if status == 200 and asked.operation and asked not in self._done:
                self._done.append(asked)
            elif status in (0, 421, 429, 503, 507) and tries > 1:
                delay = int(self._dice.uniform(0, 0.4) * US)
                self._process.schedule(delay, lambda: self._try(asked, tries - 1), "rights")

        hosts = list(self._cluster.hosts)
        leader = self._cluster.leader()
        if leader is None or self._dice.random() < 0.2:
            leader = self._dice.choice(hosts)
        self._ask(leader, asked.caller, asked.request, answered)

    def _ask(self, node: int, caller: Caller, request: Request, answered: OnAnswer) -> None:
        requests = self._requests[caller.principal]
        requests.request(f"http://controller-{node}", request, answered, _TRY_S)

    # -- at the end ---------------------------------------------------------------------------

    def at_the_end(self) -> Counter[str]:
        """Judge the log, and what users are answered at rest. Returns what was seen."""
        if self._whole_ledger() is None:
            return self.facts
        self._fold, self._folded_to = RightsFold(SUPER_USERS), 0
        self._fold_the_log()
        for operation, count in self._fold.by_users.items():
            self.facts[f"rights used: {operation}"] += count
        for caller in USERS:
            self._judge_changes(caller)
            self._judge_lists(caller)
        return self.facts

    def _whole_ledger(self) -> Any:
        """Return the longest ledger that has everything; None: there is none."""
        ledgers = [each.ledger for each in self._cluster.running().values()]
        whole_ones = (each for each in ledgers if each.log_start == 0)
        return max(whole_ones, key=lambda each: each.log_end, default=None)

    def _fold_the_log(self) -> bool:
        """Fold what is new. Returns whether entries changed."""
        before = dict(self._fold.entries)
        ledger = self._whole_ledger()
        for batch in ledger.batches(self._folded_to):
            for wrong in self._fold.take(batch):
                self._fail(f"R1: {wrong}, whom the entries before it refuse")
        self._folded_to = ledger.log_end
        return self._fold.entries != before

    def _judged(self, caller: Caller, request: Request) -> Reply:
        """Return an answer that was given by the entries that are folded.

        A grant that somebody no longer waits for may come late: then the user asks again.
        """
        for _ in range(_TRIES):
            reply = self._answer(caller, request)
            if not self._fold_the_log():
                return reply
        self._fail("R2: rights still change at rest")
        raise AssertionError

    def _may(self, caller: Caller, operation: str, name: str) -> bool:
        return self._fold.may(caller.principal, caller.address, operation, "TOPIC", name)

    def _judge_changes(self, caller: Caller) -> None:
        """A dry run, and each old request again."""
        who = caller.principal
        for name in NAMES:
            body = json.dumps({"names": [name], "dryRun": True}).encode()
            request = Request("DELETE", "/v1/topics", body, headers={"content-type": JSON})
            refused = self._judged(caller, request).status == _REFUSED
            if refused == self._may(caller, "DELETE", name):
                self._fail(f"R2: at rest {who} may delete {name}: {refused}")
        for asked in self._done:
            if asked.caller is not caller:
                continue
            refused = self._judged(caller, asked.request).status == _REFUSED
            self.facts[f"rights: old requests {'refused' if refused else 'recalled'}"] += 1
            if refused == self._may(caller, asked.operation, asked.name):
                self._fail(f"R2: {who} repeats {asked.operation} of {asked.name}: {refused}")

    def _judge_lists(self, caller: Caller) -> None:
        reply = self._judged(caller, Request("GET", "/v1/topics", query={"limit": "1000"}))
        controller = self._cluster.running()[self._cluster.leader()]
        expected = [
            name for name in controller.image.topics.names if self._may(caller, "DESCRIBE", name)
        ]
        listed = [each["name"] for each in json.loads(reply.body)["topics"]]
        if listed != expected:
            self._fail(f"R2: {caller.principal} is shown {listed}, and may describe {expected}")

    def _answer(self, caller: Caller, request: Request) -> Reply:
        """Ask the leader, and let the world go on until it has answered."""
        answers: list[Reply | Unreachable] = []
        node = self._cluster.leader()
        if node is None:
            self._fail("R2: nobody leads at rest")
        self._ask(node, caller, request, answers.append)
        self._cluster.world.run_for(_AT_REST_S, lambda: bool(answers))
        if not answers or not isinstance(answers[0], Reply):
            self._fail(f"R2: {caller.principal} got no answer at rest: {answers}")
        found = answers[0]
        assert isinstance(found, Reply)
        return whole(found)

    def _fail(self, what: str) -> None:
        self._cluster.world.fail(what, None)
