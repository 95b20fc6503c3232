"""Administrators of clients: entries, quotas, credentials, tokens, passwords, producer ids.

Each of them works on names of its own, one request at a time. So it knows what must be there: a
request without an answer, after all its tries, leaves two possible states, and its name is not used
again. Secrets are sealed under one key, which no node writes down.

- S1: what was acknowledged is what a linearizable read and the state at rest say.
- S2: nothing is refused that must be done.
- S3: a credential and a password in a config at rest are sealed, and open to what was set, also
  at agents, during the faults too (`agent_secrets`). Passwords are set once logberg.version is 2,
  and hosts of entries are ranges of addresses once metadata.version is 33: an administrator raises
  both.
- S4: a token's HMAC is the key's own in each answer, and tokens that have expired are removed.
- S5: no producer id is handed out twice.
"""

import json
from base64 import b64decode, b64encode
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from metadata.features import LOGBERG_VERSION, METADATA_VERSION, SEALED_CONFIGS_FROM
from metadata.image import EMPTY
from metadata.records import EntityData
from metadata.sealed_blocks import key_id_of
from metadata.sealed_places import scram_place, token_hmac
from metadata.sealing import ClusterKey
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.simulation.administrators import out_of_time
from tests.simulation.agent_secrets import PASSWORD, PASSWORDS_OF, AgentSecrets, salted, stored_key

KEY = ClusterKey(b"a key of simulated clusters, all")
TOKEN_MS = 6_000
"""How long a token lives without a renewal."""
ADMINISTRATORS = 4
ACTS_PER_S = 3.0
TRIES = 10
SILENT = {421, 429, 503, 507}
MECHANISM = 1
"""SCRAM-SHA-256."""
RANGES_FROM = 32
"""The metadata.version from which the host of an entry may be a range of addresses."""
NEAR, FAR = "10.1.2.3", "10.9.9.9"
"""Addresses that are asked about."""
HOSTS = {"*": {NEAR, FAR}, NEAR: {NEAR}, "10.1.0.0/16": {NEAR}, "10.0.0.0/8": {NEAR, FAR}}
"""Hosts of entries, with the addresses that each lets in. Those with a slash are ranges."""

Take = Callable[[dict[str, Any]], None]


class Administrator:
    """One of them. `possible` says what may be there, by kind and name."""

    def __init__(self, crowd: "Clients", number: int) -> None:
        self._crowd = crowd
        self._dice = crowd.cluster.world.random(f"clients/{number}")
        self._number = number
        self._names = 0
        self.principal = f"User:s{number}"
        self.possible: dict[tuple[str, str], list[Any]] = {}
        self.ever: defaultdict[tuple[str, str], list[Any]] = defaultdict(lambda: [None])
        """What was ever asked for, by kind and name."""
        self._current: dict[str, str] = {}
        self._tokens: dict[str, str] = {}

    def go_on(self) -> None:
        """Do something, in a while."""
        delay = int(self._dice.expovariate(ACTS_PER_S) * US)
        self._crowd.process.schedule(delay, self._act, "clients")

    def _act(self) -> None:
        if not self._crowd.cluster.busy:
            self.go_on()
            return
        kinds = (self._acl, self._quota, self._scram, self._token, self._producer_ids, self._read)
        self._dice.choice((*kinds, self._password, self._ask_agent))()

    def _name(self, kind: str) -> str:
        """Return the name in use for a kind: another one after an answer that never came."""
        if kind not in self._current:
            self._names += 1
            self._current[kind] = f"s{self._number}-{self._names}{self._ending(kind)}"
            self.possible[kind, self._current[kind]] = [None]
        return self._current[kind]

    def _ending(self, kind: str) -> str:
        """Return how names of a kind end."""
        return ""

    # -- changes ------------------------------------------------------------------------------

    def _acl(self) -> None:
        name = self._name("acl")
        (there,) = self.possible["acl", name]
        if there:
            which = {"principal": f"User:{name}"}
            if self._dice.random() < 0.5:
                which["host"] = there
            body: dict[str, Any] = {"filters": [which]}
            self._set("acl", name, None, "DELETE", "/v1/acls", body, "filters")
            return
        host = self._dice.choice(list(HOSTS))
        if "/" in host and self._crowd.level(METADATA_VERSION) < RANGES_FROM:
            self._raise(METADATA_VERSION, RANGES_FROM + 1)
            return
        entry = {"resourceType": "TOPIC", "resourceName": _topic(name), "operation": "READ"}
        body = {"acls": [entry | {"principal": f"User:{name}", "host": host}]}
        self._set("acl", name, host, "POST", "/v1/acls", body, "acls")

    def _quota(self) -> None:
        name = self._name("quota")
        value = self._dice.choice((None, 1.0, 2.0, 3.0))
        entry = {
            "entity": [{"entityType": "user", "entityName": name}],
            "operations": [{"key": "producer_byte_rate", "value": value}],
        }
        self._set("quota", name, value, "POST", "/v1/quotas", {"entries": [entry]}, "entries")

    def _scram(self) -> None:
        name = self._name("scram")
        (there,) = self.possible["scram", name]
        which = {"name": name, "mechanism": "SCRAM-SHA-256"}
        if there is not None and self._dice.random() < 0.4:
            body: dict[str, Any] = {"deletions": [which]}
            self._set("scram", name, None, "POST", "/v1/users/scram", body, "users")
            return
        iterations = self._dice.choice((4096, 8192, 16384))
        secrets = {
            "iterations": iterations,
            "salt": b64encode(name.encode()).decode(),
            "saltedPassword": b64encode(salted(name, iterations)).decode(),
        }
        body = {"upsertions": [which | secrets]}
        self._set("scram", name, iterations, "POST", "/v1/users/scram", body, "users")

    def _password(self) -> None:
        if self._crowd.level(LOGBERG_VERSION) < SEALED_CONFIGS_FROM:
            self._raise(LOGBERG_VERSION, SEALED_CONFIGS_FROM)
            return
        leader = self._crowd.cluster.leader()
        image = EMPTY if leader is None else self._crowd.cluster.controllers[leader].image
        if image.cluster.brokers.get(int(PASSWORDS_OF)) is None:
            self.go_on()
            return
        name = self._name("password")
        value = self._dice.choice((None, f"password-{self._dice.randint(1, 9)}"))
        change = {"name": PASSWORD.format(name), "value": value}
        change["operation"] = "delete" if value is None else "set"
        resource = {"resourceType": "broker", "resourceName": PASSWORDS_OF, "configs": [change]}
        body = {"resources": [resource]}
        self._set("password", name, value, "PATCH", "/v1/configs", body, "resources")

    def _raise(self, feature: str, level: int) -> None:
        body = {"updates": [{"feature": feature, "maxVersionLevel": level}]}
        # Nodes may not be registered yet.
        legal = ("FEATURE_UPDATE_FAILED", "INVALID_UPDATE_VERSION")
        self._send("POST", "/v1/features", body, lambda _: None, lambda: None, legal)

    def _set(
        self,
        kind: str,
        name: str,
        value: Any,
        method: str,
        path: str,
        body: dict[str, Any],
        results: str,
    ) -> None:
        """Change a name's state. It may be either state until the answer comes."""
        before = self.possible[kind, name]
        self.possible[kind, name] = [*before, value]
        self.ever[kind, name].append(value)

        def done(reply: dict[str, Any]) -> None:
            error = reply[results][0]["error"]
            if error is not None:
                self._crowd.fail(f"S2: {kind} of {name} was refused: {error}")
            self.possible[kind, name] = [value]
            self._crowd.facts[f"{kind} changes"] += 1

        def unknown() -> None:
            del self._current[kind]

        self._send(method, path, body, done, unknown)

    def _token(self) -> None:
        token_id = next(iter(self._tokens), None)
        if token_id is None or self._dice.random() < 0.5:
            self._send("POST", "/v1/tokens", {}, self._made, lambda: None)
            return
        held = {"hmac": self._tokens.pop(token_id)}
        what = self._dice.choice(("renew", "expire"))

        def done(reply: dict[str, Any]) -> None:
            if "code" not in reply:
                self._crowd.facts[f"tokens: {what}"] += 1

        path = f"/v1/tokens/{token_id}/{what}"
        # It may have expired meanwhile, or an earlier try has ended it.
        gone = ("DELEGATION_TOKEN_NOT_FOUND", "DELEGATION_TOKEN_EXPIRED")
        self._send("POST", path, held, done, lambda: None, gone)

    def _made(self, reply: dict[str, Any]) -> None:
        token_id = reply["token"]["tokenId"]
        if b64decode(reply["hmac"]) != token_hmac(KEY, token_id):
            self._crowd.fail(f"S4: token {token_id} came with another HMAC")
        self._tokens[token_id] = reply["hmac"]
        self._crowd.secrets.hmacs[token_id] = b64decode(reply["hmac"])
        self._crowd.facts["tokens made"] += 1

    def _producer_ids(self) -> None:
        cluster = self._crowd.cluster
        running = [b for b, each in sorted(cluster.brokers.items()) if each.agent is not None]
        if not running:
            self.go_on()
            return
        broker_id = self._dice.choice(running)
        epoch = cluster.brokers[broker_id].agent.broker_epoch
        if epoch < 0:
            self.go_on()
            return
        body = {"brokerId": broker_id, "brokerEpoch": epoch}

        def done(reply: dict[str, Any]) -> None:
            if "code" not in reply:
                self._crowd.handed_out(reply["producerIdStart"], reply["producerIdLen"])

        caller = Caller(f"Broker:{broker_id}", "certificate", "10.0.0.1")
        stale = ("STALE_BROKER_EPOCH",)
        self._send("POST", "/v1/producer-ids", body, done, lambda: None, stale, caller)

    # -- reads --------------------------------------------------------------------------------

    def _read(self, kind: str = "") -> None:
        kind = kind or self._dice.choice(("acl", "quota", "scram"))
        name = self._name(kind)
        (wanted,) = self.possible[kind, name]
        host = self._dice.choice((NEAR, FAR))
        if kind == "acl":
            wanted = wanted is not None and host in HOSTS[wanted]
        path, query = {
            "acl": (
                "/v1/acls/check",
                {
                    "principal": f"User:{name}",
                    "operation": "DESCRIBE",
                    "resourceType": "TOPIC",
                    "resourceName": _topic(name),
                    "host": host,
                },
            ),
            "quota": ("/v1/quotas/resolve", {"user": name}),
            "scram": (f"/v1/users/{name}", {}),
        }[kind]

        def answered(answer: Reply | Unreachable) -> None:
            if isinstance(answer, Reply) and answer.status in (200, 404):
                reply = json.loads(answer.body)
                if _told(kind, reply) != wanted:
                    self._crowd.fail(f"S1: {kind} of {name}: {query}, {reply}, not {wanted}")
                self._crowd.facts[f"{kind} reads"] += 1
            self.go_on()

        request = Request("GET", path, query=query)
        self._crowd.requests.request(self._crowd.url(self._dice), request, answered, 2.0)

    def _ask_agent(self) -> None:
        """S3: an agent opens what its image holds, however old that is."""
        agents = [each.agent for _, each in sorted(self._crowd.cluster.brokers.items())]
        agents = [agent for agent in agents if agent is not None and agent.may_serve()]
        if agents:
            self._crowd.secrets.judge(self._dice.choice(agents).image, self.ever)
        self.go_on()

    def judge_log(self, ledger: Any) -> None:
        """Hold what was acknowledged against the log; the crowd judges what stands at rest."""

    # -- sending ------------------------------------------------------------------------------

    def _send(
        self,
        method: str,
        path: str,
        body: dict[str, Any],
        done: Take,
        unknown: Callable[[], None],
        legal: tuple[str, ...] = (),
        caller: Caller | None = None,
    ) -> None:
        wall = self._crowd.process.clock.wall_ms()
        headers = {
            "content-type": "application/json",
            "x-logberg-request-id": uuid_text(uuid7(wall, self._dice.getrandbits(74))),
        }
        request = Request(method, path, json.dumps(body).encode(), headers=headers)
        self._crowd.under_way += 1
        self._try(request, done, unknown, legal, caller or Caller(self.principal, "token", ""), 1)

    def _try(
        self,
        request: Request,
        done: Take,
        unknown: Callable[[], None],
        legal: tuple[str, ...],
        caller: Caller,
        tries: int,
    ) -> None:
        def answered(answer: Reply | Unreachable) -> None:
            if isinstance(answer, Reply) and out_of_time(answer):
                # A leader's clock leapt: what an earlier try came to isn't known.
                self._crowd.facts["ids out of time"] += 1
                unknown()
            elif isinstance(answer, Reply) and answer.status not in SILENT:
                reply = json.loads(answer.body)
                if answer.status != 200 and self._crossed_an_erasure(reply):
                    self._crowd.facts["requests on both sides of an erasure"] += 1
                    unknown()
                    self._crowd.under_way -= 1
                    self.go_on()
                    return
                if answer.status != 200 and reply["code"] not in legal:
                    self._crowd.fail(f"S2: {request.path}: {answer.status} {reply}")
                done(reply)
            elif tries < TRIES:
                again = int(self._dice.uniform(0.05, 0.6) * US)
                self._crowd.process.schedule(
                    again,
                    lambda: self._try(request, done, unknown, legal, caller, tries + 1),
                    "clients again",
                )
                return
            else:
                self._crowd.facts["answers that never came"] += 1
                unknown()
            self._crowd.under_way -= 1
            self.go_on()

        self._crowd.as_caller(caller).request(self._crowd.url(self._dice), request, answered, 2.0)

    def _crossed_an_erasure(self, reply: dict[str, Any]) -> bool:
        """Return whether a request with a secret has another digest since an erasure (ADR 0093)."""
        return self._crowd.cluster.shape.erasing and reply["code"] == "REQUEST_ID_REUSED"


class Clients:
    """All of them, and what must hold. Idle unless the shape asks for them."""

    def __init__(self, cluster: Any, host_id: int) -> None:
        self.cluster, self._host_id = cluster, host_id
        self.facts: Counter[str] = Counter()
        self._administrators: list[Administrator] = []
        self._blocks: set[int] = set()
        self.under_way = 0
        """Changes that were sent, and neither answered nor given up."""
        self._by_caller: dict[str, Any] = {}
        self.secrets = AgentSecrets(cluster.opening_key, self.fail)

    def start(self, *more: tuple[type[Administrator], int]) -> None:
        """Let them begin, with so many others of other types."""
        self._host = SimulatedHost(self.cluster.world, self.cluster.network, self._host_id)
        self.process = self._host.boot()
        self.requests = self._host.requests(Caller("User:reader", "token", "10.0.0.11"))
        self._administrators = [Administrator(self, n) for n in range(ADMINISTRATORS)]
        for other, count in more:
            first = len(self._administrators)
            self._administrators += [other(self, first + n) for n in range(count)]
        for administrator in self._administrators:
            administrator.go_on()

    def as_caller(self, caller: Caller) -> Any:
        """Return what sends requests of a caller."""
        if caller.principal not in self._by_caller:
            self._by_caller[caller.principal] = self.cluster.requests_of(self._host, caller)
        return self._by_caller[caller.principal]

    def url(self, dice: Any) -> str:
        """Return whom to ask: mostly the leader."""
        leader = self.cluster.leader()
        if leader is None or dice.random() < 0.1:
            leader = dice.choice(list(self.cluster.hosts))
        return f"http://controller-{leader}"

    def level(self, feature: str) -> int:
        """Return the level of a feature as the leader has it; without a leader 0."""
        leader = self.cluster.leader()
        if leader is None:
            return 0
        level: int = self.cluster.controllers[leader].image.features.levels.get(feature, 0)
        return level

    def fail(self, why: str) -> None:
        """Fail the run."""
        self.cluster.world.fail(why, None)

    def handed_out(self, start: int, length: int) -> None:
        """S5. A block that is handed out by hand is nobody else's, either."""
        requests = self.cluster.agent_requests
        if (
            requests.owner(start // 1_000, self) is not self
            or start in self._blocks
            or start % 1_000
            or length != 1_000
        ):
            self.fail(f"S5: the block of {length} from {start} was handed out before")
        self._blocks.add(start)
        self.facts["blocks of producer ids"] += 1

    def at_the_end(self) -> Counter[str]:
        """Hold the state at rest against what was acknowledged."""
        leader = self.cluster.leader()
        image = self.cluster.running()[leader].image
        ledgers = [each.ledger for each in self.cluster.running().values()]
        whole = [ledger for ledger in ledgers if ledger.log_start == 0]
        for administrator in self._administrators:
            # Where folders are damaged, the log's begin may be lost at every node.
            if whole:
                administrator.judge_log(whole[0])
            for (kind, name), possible in administrator.possible.items():
                if kind == "declared":
                    continue
                found = self._stands(image, kind, name)
                if found not in possible:
                    self.fail(f"S1: {kind} of {name} is {found} at rest, and may be {possible}")
                self.facts["names judged"] += 1
        for (user, mechanism), record in image.scram.credentials.items():
            self._judge_credential(user, mechanism, record)
        self._judge_agents(image)
        if max(self._blocks, default=-1_000) + 1_000 > image.producer_ids.next_producer_id:
            self.fail("S5: a block was acknowledged, and is not in the log")
        now = self.cluster.hosts[leader].machine.wall_offset_us // 1000
        now += self.process.clock.wall_ms()
        for expiry, token_id in image.tokens.expiries:
            if expiry < now - 5_000:
                self.fail(f"S4: token {token_id} expired {now - expiry} ms ago, and is there")
        return self.facts + self.secrets.facts

    def _judge_credential(self, user: str, mechanism: int, record: Any) -> None:
        """S3."""
        if key_id_of(record.stored_key) != KEY.id or key_id_of(record.server_key) != KEY.id:
            self.fail(f"S3: the credential of {user} is not sealed")
        opened = self.cluster.opening_key().open(
            scram_place(user, mechanism, "storedKey"), record.stored_key
        )
        if opened != stored_key(user, record.iterations):
            self.fail(f"S3: the credential of {user} opens to another key")
        self.facts["credentials opened"] += 1

    def _judge_agents(self, image: Any) -> None:
        """S3: each agent opens what the log holds, and nothing lies there in clear."""
        for value in (v for _, values in image.configs.resources.items() for _, v in values):
            if "password-" in value:
                self.fail(f"S3: the log holds {value} in clear")
        for incarnation in self.cluster.brokers.values():
            for administrator in self._administrators:
                self.secrets.judge(incarnation.agent.image, administrator.possible)

    def _stands(self, image: Any, kind: str, name: str) -> Any:
        """Return what an image says of a name."""
        name = self.cluster.erased_values.name_in(image, name)
        if kind == "acl":
            hosts = [e.host for _, e in image.acls.entries.items() if e.principal == f"User:{name}"]
            return hosts[0] if len(hosts) == 1 else hosts or None
        if kind == "password":
            return self.secrets.password(image, name)
        if kind == "quota":
            return image.client_quotas.of(EntityData("user", name)).get("producer_byte_rate")
        record = image.scram.credentials.get((name, MECHANISM))
        return None if record is None else record.iterations


def _told(kind: str, reply: dict[str, Any]) -> Any:
    """Return what an answer says of a name."""
    if kind == "acl":
        return reply["allowed"]
    if kind == "quota":
        return next((quota["value"] for quota in reply["quotas"]), None)
    user = reply.get("user")
    return None if user is None else user["credentials"][0]["iterations"]


def _topic(name: str) -> str:
    """Return the topic of a name's entry: without what makes the name a person's."""
    return name.partition("@")[0]
