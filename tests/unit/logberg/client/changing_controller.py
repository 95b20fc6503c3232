"""A controller behind a real server, which answers changes by their names."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from metadata.messages.joined_changes import CHANGES_PATH
from runtime.http.requests import Reply, Request
from runtime.http.server import HttpServer
from tests.unit.runtime.http.http_kit import make_server

JSON = {"content-type": "application/json"}


class ChangingController:
    """Answers changes by their name; makes each request id once."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        """The names in each request."""
        self.ids: dict[str, set[str]] = {}
        """The request ids that came with each name."""
        self.made: Counter[str] = Counter()
        self._done: set[str] = set()
        self.knows_route = True
        self.takes_at_most = 1_000
        self.leader: str | None = None
        """Another controller, which leads."""
        self.held: list[Callable[[], None]] | None = None
        """Replies that wait until the test lets them go; None: they go at once."""
        self.first: dict[str, tuple[int, dict[str, Any]]] = {}
        """What a name is answered the first time."""

    def __call__(self, request: Request, reply: Callable[[Reply], None]) -> None:
        joined = request.path == CHANGES_PATH
        body = msgspec.json.decode(request.body) if request.body else {}
        if joined and not self.knows_route:
            answer = (404, {"code": "NOT_FOUND", "message": "there is no path"})
            self.requests.append(["?"])
        elif joined:
            answer = self._joined(body["changes"])
        else:
            name = _name_of(body) or request.path
            self.requests.append([name])
            answer = self._one(name, request.headers["x-logberg-request-id"])

        def send() -> None:
            reply(Reply(answer[0], msgspec.json.encode(answer[1]), JSON))

        if self.held is None:
            send()
        else:
            self.held.append(send)

    def _joined(self, changes: list[dict[str, Any]]) -> tuple[int, Any]:
        self.requests.append([_name_of(each["body"]) for each in changes])
        if self.leader is not None:
            return 421, self._elsewhere()
        if len(changes) > self.takes_at_most:
            return 413, {"code": "BODY_TOO_LARGE", "message": "send less"}
        answers = [self._one(_name_of(each["body"]), each["requestId"]) for each in changes]
        outcomes = [{"status": s, "retryAfterS": None, "body": b} for s, b in answers]
        return 200, {"outcomes": outcomes}

    def _elsewhere(self) -> dict[str, Any]:
        return {"code": "NOT_CONTROLLER", "message": "another leads", "leaderUrl": self.leader}

    def _one(self, name: str, request_id: str) -> tuple[int, Any]:
        if self.leader is not None:
            return 421, self._elsewhere()
        self.ids.setdefault(name, set()).add(request_id)
        if name in self.first:
            return self.first.pop(name)
        if name.startswith("refused"):
            return 409, {"code": "TOPIC_ALREADY_EXISTS", "message": name}
        self.made[name] += request_id not in self._done
        self._done.add(request_id)
        topic = {"name": name, "numPartitions": 1, "replicationFactor": 1}
        return 200, {"name": name, "topics": [topic], "offset": 1, "epoch": 1}

    def let_go(self) -> None:
        """Send the replies that wait, and hold no more."""
        held, self.held = self.held or [], None
        for send in held:
            send()


class RunningControllers:
    """Controllers behind real servers."""

    def __init__(self, *controllers: ChangingController) -> None:
        self.controllers = controllers
        self.servers: list[HttpServer] = []

    async def __aenter__(self) -> list[str]:
        for each in self.controllers:
            server = make_server(each)
            server.start()
            self.servers.append(server)
        return [f"http://127.0.0.1:{server.port}" for server in self.servers]

    async def __aexit__(self, *_: object) -> None:
        for server in self.servers:
            await server.stop()


def _name_of(body: dict[str, Any]) -> str:
    topics = body.get("topics")
    return str(topics[0]["name"] if topics else body.get("name", ""))
