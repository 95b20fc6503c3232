"""Clients of coordination: they open sessions, renew them, freeze, elect, lock, and write.

Rule: a client believes that it holds something from the answer that says so until its own deadline,
which counts from the sending of the last renewal that was answered. Between two acts it may be
frozen or killed. When it thaws, it writes first and looks at its clock afterwards: a fence must
refuse what is late.

What must hold (I21): no two clients believe at the same time that they hold one lock or lead one
election; no session ends before the deadline of its client. `coordination_fold` judges the log.
"""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from metadata.image import MetadataImage
from metadata.uuids import parse_uuid, uuid7, uuid_text
from runtime.http.requests import JSON, Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.simulation.coordination_fold import GUARDED

FIRST_HOST = 930
CLIENTS = 4
RESOURCES = (("lock", "a"), ("lock", "b"), ("election", "e"))
TTL_MS = 1_500
_STEP_S = 0.12
_TRY_S = 0.7
_EXPECTED = {
    "ENTRY_EXISTS",
    "FENCED",
    "NOT_HELD",
    "SESSION_LOST",
    "REQUEST_EXPIRED",
    "REQUEST_FROM_FUTURE",
}
Named = tuple[str, str]


class SessionClient:
    """One client; its next life begins anew."""

    def __init__(self, cluster: Any, number: int, clients: "SessionClients") -> None:
        self._cluster = cluster
        self._clients = clients
        self.name = f"client-{number}"
        self._dice: Random = cluster.world.random(f"sessions/{number}")
        self._host = SimulatedHost(cluster.world, cluster.network, FIRST_HOST + number)
        self._caller = Caller(f"User:{self.name}", "token", "10.0.0.9")
        self.boot()

    def boot(self) -> None:
        """Begin a life without a session."""
        self._process = self._host.boot()
        self._requests = self._cluster.requests_of(self._host, self._caller)
        self.session: str | None = None
        self.deadline = 0.0
        """Until then the session is certainly open on the server."""
        self._renewed_at = 0.0
        self.entered: set[Named] = set()
        self.tokens: dict[Named, int] = {}
        """Of what it holds, as far as it knows."""
        self._last_tokens: dict[Named, int] = {}
        self._leaving: dict[Named, int] = {}
        """The tokens that it gave back, as long as no answer says that they are gone."""
        self._given_back: dict[Named, int] = {}
        self._plan()

    def believes(self, named: Named) -> bool:
        """Return whether the client thinks now that it holds something."""
        return named in self.tokens and self._now() < self.deadline

    def _now(self) -> float:
        return float(self._cluster.world.now)

    def _plan(self) -> None:
        delay = int(self._dice.uniform(0.5, 1.5) * _STEP_S * US)
        self._process.schedule(delay, self._act, self.name)

    def _act(self) -> None:
        self._plan()
        if not self._cluster.busy:
            return
        fate = self._dice.random()
        if fate < 0.01 and not self._cluster.healed:
            self._freeze()
            return
        if fate < 0.014 and not self._cluster.healed:
            self._clients.counts["killed"] += 1
            self._cluster.later(0.5, self._again)
            self._host.kill()
            return
        if self.session is None:
            self._open()
        elif self._now() >= self.deadline:
            # It writes before it notices: the fence must refuse what is late.
            self._write(self._last_tokens)
            self._lost()
        elif self._now() - self._renewed_at > TTL_MS / 4000:
            self._renew(self.session)
        else:
            self._work(self.session)

    def _freeze(self) -> None:
        self._clients.counts["frozen"] += 1
        self._host.pause()
        self._cluster.later(self._dice.uniform(0.1, 3.0) * TTL_MS / 1000, self._host.resume)

    def _again(self) -> None:
        if not self._host.running:
            self.boot()

    def _lost(self) -> None:
        self._clients.counts["lost"] += self.session is not None
        self.session = None
        self.entered.clear()
        self.tokens.clear()
        self._leaving.clear()

    # -- what it asks for ---------------------------------------------------------------------

    def _open(self) -> None:
        sent = self._now()

        def opened(reply: dict[str, Any]) -> None:
            if self.session is None:
                self.session = reply["sessionId"]
                self._alive(sent, reply["ttlMs"])

        self._change("sessions", {"ttlMs": TTL_MS, "clientName": self.name}, opened)

    def _alive(self, sent: float, ttl_ms: int) -> None:
        self._renewed_at = max(self._renewed_at, sent)
        self.deadline = max(self.deadline, sent + ttl_ms / 1000)

    def _renew(self, session: str) -> None:
        sent = self._renewed_at = self._now()

        def renewed(reply: dict[str, Any]) -> None:
            if self.session == session and self._now() < self.deadline:
                self._clients.counts["renewed"] += 1
                self._alive(sent, reply["ttlMs"])

        self._ask("POST", "sessions/renew", {"sessionId": session}, {}, renewed)

    def _work(self, session: str) -> None:
        named = self._dice.choice(RESOURCES)
        wanted = {"kind": named[0], "name": named[1], "id": self.name, "sessionId": session}
        if named in self._leaving:
            # Entering now would find the old entry, and then lose it to the removal.
            self._leave(named, wanted)
        elif named not in self.entered:
            self._enter(named, wanted)
        elif named not in self.tokens:
            self._look(named, session)
        elif self._dice.random() < 0.3:
            self._leaving[named] = self._given_back[named] = self.tokens.pop(named)
            self.entered.discard(named)
            self._leave(named, wanted)
        else:
            self._write({named: self.tokens[named]})

    def _leave(self, named: Named, wanted: dict[str, Any]) -> None:
        token = self._leaving[named]

        def left(_reply: dict[str, Any]) -> None:
            if self._leaving.get(named) == token:
                del self._leaving[named]

        self._change("entries/leave", {**wanted, "token": token}, left)

    def _enter(self, named: Named, wanted: dict[str, Any]) -> None:
        session = wanted["sessionId"]

        def entered(reply: dict[str, Any]) -> None:
            if self.session == session:
                self.entered.add(named)
                if reply["granted"]:
                    # The grant may be over: an answer can be late.
                    self._look(named, session)

        self._change("entries", wanted, entered)

    def _look(self, named: Named, session: str) -> None:
        """Ask whether it is granted; only an answer of a real leader counts."""

        def found(reply: dict[str, Any]) -> None:
            for entry in reply["entries"]:
                mine = entry["sessionId"] == session and entry["granted"]
                # A late answer may tell of the grant that was given back since.
                old = entry["token"] == self._given_back.get(named)
                if mine and self.session == session and named in self.entered and not old:
                    self.tokens[named] = self._last_tokens[named] = entry["token"]
                    self._clients.granted(self, named)

        self._ask("GET", "entries", None, {"kind": named[0], "name": named[1]}, found)

    def _write(self, tokens: dict[Named, int]) -> None:
        """Write the token into the key that the resource guards."""
        for named, token in sorted(tokens.items()):
            operation = {
                "op": "upsert",
                "key": f"{GUARDED}{named[0]}/{named[1]}",
                "data": b64encode(str(token).encode()).decode(),
            }
            fence = {"kind": named[0], "name": named[1], "token": token}
            body = {"operations": [operation], "fences": [fence]}
            self._change("commit", body, lambda _reply: None)

    # -- requests -----------------------------------------------------------------------------

    def _change(
        self, path: str, body: dict[str, Any], done: Callable[[dict[str, Any]], None]
    ) -> None:
        wall = self._process.clock.wall_ms()
        request_id = uuid_text(uuid7(wall, self._dice.getrandbits(74)))
        self._ask("POST", path, body, {}, done, {"x-logberg-request-id": request_id})

    def _ask(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        query: dict[str, str],
        done: Callable[[dict[str, Any]], None],
        headers: dict[str, str] | None = None,
    ) -> None:
        def answered(answer: Reply | Unreachable) -> None:
            if not isinstance(answer, Reply):
                return
            said = json.loads(answer.body)
            if answer.status == 200:
                self._clients.counts[path] += 1
                done(said)
                return
            self._clients.counts[f"refused: {said['code']}"] += 1
            if said["code"] == "SESSION_LOST" and self.session is not None:
                self._check_lost(body)
            elif answer.status in (400, 404, 409, 410) and said["code"] not in _EXPECTED:
                self._cluster.world.fail(f"I21: {self.name} was told {said}", None)

        leader = self._cluster.leader() or self._dice.choice(list(self._cluster.hosts))
        request = Request(
            method,
            f"/v1/coordination/{path}",
            b"" if body is None else json.dumps(body).encode(),
            query,
            {"content-type": JSON, **(headers or {})},
        )
        self._requests.request(f"http://controller-{leader}", request, answered, _TRY_S)

    def _check_lost(self, body: dict[str, Any] | None) -> None:
        """The server says that the session has ended: not before the client's own deadline."""
        if body is None or body.get("sessionId") != self.session:
            return
        if self._now() < self.deadline:
            self._cluster.world.fail(
                f"I21: the session of {self.name} is refused {self.deadline - self._now()} s "
                "before its deadline",
                None,
            )
        self._lost()


class SessionClients:
    """All of them, and what they saw."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.counts: Counter[str] = Counter()
        self._all: list[SessionClient] = []
        self._opened: dict[bytes, int] = {}
        """By session: an offset at which it was seen."""

    def start(self) -> None:
        """Let them begin."""
        self._all = [SessionClient(self._cluster, number, self) for number in range(CLIENTS)]

    def granted(self, client: SessionClient, named: Named) -> None:
        """A client has learnt of a grant: nobody else may believe in one."""
        self.counts[f"granted {named[0]}"] += 1
        others = [each.name for each in self._all if each is not client and each.believes(named)]
        if others and client.believes(named):
            self._cluster.world.fail(
                f"I21: {client.name} and {others} hold {':'.join(named)} at the same time", None
            )

    def check(self, image: MetadataImage, node_id: int) -> None:
        """No committed image lacks a session whose client has not reached its deadline."""
        for client in self._all:
            if client.session is None or self._cluster.world.now >= client.deadline:
                continue
            session_id = parse_uuid(client.session)
            if session_id in image.coordination.sessions:
                self._opened.setdefault(session_id, image.offset)
            elif self._opened.get(session_id, image.offset + 1) <= image.offset:
                self._cluster.world.fail(
                    f"I21: the session of {client.name} is gone at offset {image.offset}, "
                    f"{client.deadline - self._cluster.world.now} s before its deadline",
                    node_id,
                )
