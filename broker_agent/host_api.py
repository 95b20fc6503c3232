"""The routes by which a host in another process uses the agent: `/v1/host/…` (ADR 0040).

Rule: only a caller on the host's unix socket is answered. The system lets only the user that runs
the agent open that socket. Any other caller is refused, whatever it has authenticated as: these
routes give out secrets, and speak for the broker.

A secret is answered only while the broker may serve: an older image may hold a credential that is
deleted. A secret stands in the answer and nowhere else.
"""

from collections import deque
from collections.abc import Callable
from typing import TypeVar

import msgspec

from broker_agent.agent import AgentCore
from broker_agent.directory_assignments import DirectoryAssignments
from broker_agent.opened_secrets import Secrets
from broker_agent.producer_ids import ProducerIds
from broker_agent.replies import answer, refused
from metadata.configs.definitions import KINDS
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.configs import CLUSTER_DEFAULT
from metadata.messages.host import (
    ConfigSecret,
    HostDirectories,
    PlaceReplicasRequest,
    ScramSecret,
    SetLogDirsRequest,
    TakeProducerIdsReply,
    TakeProducerIdsRequest,
    TokenSecret,
)
from metadata.messages.scram import MECHANISMS
from metadata.messages.wire import JSON, decode
from metadata.partition_key import PartitionKey
from metadata.records import ConfigResourceType
from metadata.sealed_blocks import SealingError
from metadata.uuids import parse_uuid, uuid_text
from runtime.clock import Clock, Timer
from runtime.http.requests import UNIX_SOCKET, Reply, Request

PREFIX = "/v1/host/"
_WAIT_S = 5.0
"""How long a request for producer ids waits for a block."""
OnReply = Callable[[Reply], None]
_Message = TypeVar("_Message", bound=msgspec.Struct)
_Secret = TypeVar("_Secret")


class _Waiting:
    """A request for producer ids that no block is here for."""

    def __init__(self, request: Request, count: int, reply: OnReply) -> None:
        self.request, self.count, self.reply = request, count, reply
        self.timer: Timer | None = None


class HostApi:
    """Answers the host of one agent."""

    def __init__(
        self,
        agent: AgentCore,
        *,
        clock: Clock,
        producer_ids: ProducerIds,
        directories: DirectoryAssignments,
        secrets: Secrets,
    ) -> None:
        self._agent = agent
        self._clock = clock
        self._producer_ids = producer_ids
        self._directories = directories
        self._secrets = secrets
        self._waiting: deque[_Waiting] = deque()
        self._routes: dict[tuple[str, str], Callable[[Request], msgspec.Struct]] = {
            ("GET", "directories"): self._show_directories,
            ("POST", "directories"): self._place_replicas,
            ("PUT", "log-dirs"): self._set_log_dirs,
            ("GET", "scram"): self._scram,
            ("GET", "token"): self._token,
            ("GET", "config"): self._config,
        }

    def handle(self, request: Request, reply: OnReply) -> None:
        """Answer a request whose path begins with `PREFIX`. Calls `reply` once, now or later."""
        route = (request.method, request.path.removeprefix(PREFIX))
        try:
            _check_caller(request)
            if route == ("POST", "producer-ids"):
                self._take_producer_ids(request, reply)
            else:
                reply(_answer(request, self._route(route)(request)))
        except LogbergError as error:
            reply(refused(request, error))

    def on_producer_ids(self) -> None:
        """Ids have come: answer the requests that wait for them."""
        while self._waiting and (taken := self._take(self._waiting[0].count)):
            waiting = self._waiting.popleft()
            if waiting.timer is not None:
                waiting.timer.cancel()
            waiting.reply(_answer(waiting.request, TakeProducerIdsReply(taken)))

    def _route(self, route: tuple[str, str]) -> Callable[[Request], msgspec.Struct]:
        known = self._routes.get(route)
        if known is not None:
            return known
        methods = [method for method, path in self._routes if path == route[1]]
        if not methods and route[1] != "producer-ids":
            raise LogbergError(ErrorCode.NOT_FOUND, f"there is no {PREFIX}{route[1][:200]} here")
        allowed = " and ".join(methods) or "POST"
        raise LogbergError(ErrorCode.METHOD_NOT_ALLOWED, f"{PREFIX}{route[1]} takes {allowed}")

    # Producer ids.

    def _take_producer_ids(self, request: Request, reply: OnReply) -> None:
        count = _message(TakeProducerIdsRequest, request).count
        taken = () if self._waiting else self._take(count)
        if taken:
            reply(_answer(request, TakeProducerIdsReply(taken)))
            return
        waiting = _Waiting(request, count, reply)
        waiting.timer = self._clock.call_later(_WAIT_S, lambda: self._give_up(waiting))
        self._waiting.append(waiting)

    def _take(self, count: int) -> tuple[int, ...]:
        taken: list[int] = []
        while len(taken) < count and (one := self._producer_ids.take()) is not None:
            taken.append(one)
        return tuple(taken)

    def _give_up(self, waiting: _Waiting) -> None:
        self._waiting.remove(waiting)
        why = self._producer_ids.problem or "no controller has answered yet"
        error = LogbergError(
            ErrorCode.BROKER_NOT_AVAILABLE, f"no producer ids came within {_WAIT_S:g} s: {why}"
        )
        waiting.reply(refused(waiting.request, error))

    # Directories.

    def _show_directories(self, _request: Request) -> HostDirectories:
        said = self._agent.directories
        return HostDirectories(
            log_dirs=tuple(map(uuid_text, self._agent.config.log_dirs)),
            failed=tuple(map(uuid_text, sorted(said.failed))),
            cordoned=None if said.cordoned is None else tuple(map(uuid_text, said.cordoned)),
            waiting=self._directories.waiting(),
        )

    def _place_replicas(self, request: Request) -> HostDirectories:
        """Report all replicas of the request, or none."""
        replicas = _message(PlaceReplicasRequest, request).replicas
        directories = [
            self._own(replica.directory, f"replicas[{number}].directory")
            for number, replica in enumerate(replicas)
        ]
        for replica, directory in zip(replicas, directories, strict=True):
            key = PartitionKey(parse_uuid(replica.topic_id), replica.partition)
            self._directories.assign(key, directory)
        return self._show_directories(request)

    def _set_log_dirs(self, request: Request) -> HostDirectories:
        message = _message(SetLogDirsRequest, request)
        failed = [self._own(text, "failed") for text in message.failed]
        cordoned = (
            None
            if message.cordoned is None
            else [self._own(text, "cordoned") for text in message.cordoned]
        )
        self._agent.set_directories(failed=failed, cordoned=cordoned)
        return self._show_directories(request)

    def _own(self, text: str, field: str) -> bytes:
        directory = parse_uuid(text)
        if directory not in self._agent.config.log_dirs:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"directory {text} is not one of this broker's; name one of its setting log_dirs",
                {"field": field},
            )
        return directory

    # Secrets.

    def _scram(self, request: Request) -> ScramSecret:
        self._check_serving()
        user, named = _asked(request, "user"), _asked(request, "mechanism")
        mechanism = MECHANISMS.get(named)
        if mechanism is None:
            raise LogbergError(
                ErrorCode.UNSUPPORTED_SASL_MECHANISM,
                f"mechanism is {named[:100]!r}; use one of {', '.join(MECHANISMS)}",
                {"field": "mechanism"},
            )
        found = self._opened(lambda: self._secrets.scram(user, mechanism))
        if found is None:
            raise LogbergError(
                ErrorCode.RESOURCE_NOT_FOUND, f"the user {user[:200]!r} has no {named} credential"
            )
        return ScramSecret(found.salt, found.iterations, found.stored_key, found.server_key)

    def _token(self, request: Request) -> TokenSecret:
        self._check_serving()
        token_id = _asked(request, "tokenId")
        found = self._opened(lambda: self._secrets.token(token_id))
        if found is None:
            raise LogbergError(
                ErrorCode.DELEGATION_TOKEN_NOT_FOUND, f"there is no token {token_id[:200]!r}"
            )
        if found.expiry_ms <= self._clock.wall_ms():
            raise LogbergError(
                ErrorCode.DELEGATION_TOKEN_EXPIRED, f"the token {token_id[:200]!r} has expired"
            )
        return TokenSecret(found.token_id, found.owner, found.expiry_ms, found.hmac)

    def _config(self, request: Request) -> ConfigSecret:
        self._check_serving()
        named, name, key = (_asked(request, p) for p in ("type", "name", "key"))
        kind = KINDS.get(named)
        if kind is None:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                f"type is {named[:100]!r}; use one of {', '.join(KINDS)}",
                {"field": "type"},
            )
        if kind is ConfigResourceType.BROKER and name == CLUSTER_DEFAULT:
            name = ""
        return ConfigSecret(self._opened(lambda: self._secrets.config(kind, name, key)))

    def _check_serving(self) -> None:
        if not self._agent.may_serve():
            raise LogbergError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"this broker is {self._agent.state.value}: {self._agent.reason}; what its image "
                "holds may be old",
            )

    def _opened(self, open_: Callable[[], _Secret]) -> _Secret:
        try:
            return open_()
        except SealingError as error:
            why = "write cluster_key in the agent's settings" if not self._secrets.has_key else ""
            raise LogbergError(
                ErrorCode.SECURITY_DISABLED, f"a secret can't be opened: {why or error}"
            ) from error


def _check_caller(request: Request) -> None:
    if request.caller.method != UNIX_SOCKET:
        raise LogbergError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"{PREFIX} is for the broker beside this agent, over the unix socket that the setting "
            "host_socket names",
        )


def _message(kind: type[_Message], request: Request) -> _Message:
    return decode(kind, request.body, request.headers.get("content-type", JSON))


def _asked(request: Request, name: str) -> str:
    value = request.query.get(name)
    if not value:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            f"{request.path} needs the parameter {name}",
            {"field": name},
        )
    return value


def _answer(request: Request, value: msgspec.Struct) -> Reply:
    return answer(request, value, headers={"cache-control": "no-store"})
