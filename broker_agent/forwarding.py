"""Forwards requests to the active controller (KIP-590).

Rule: the controller learns who sent the request. The agent forwards a bearer token unchanged, and
the controller checks it: the agent knows no tokens. For a caller with a certificate, the agent
sends the caller's principal with the request; the controllers' settings must allow this broker to
name that principal (`[[delegations]]`). The controllers can't see how that caller logged in, so the
agent refuses a login under a pseudonym. The agent also sends the client's address, so that entries
about hosts count and the log names the client. The controller believes the address only from a
broker's connection. So beside a token the agent sends it only if the agent's certificate is on the
same connection. The agent forwards requests of other callers only if the
cluster requires no authentication. The agent never forwards to the routes between brokers and
controllers; otherwise a caller could act as this broker.

A controller that does not lead has changed nothing, so the agent asks the leader that it names. The
agent gives a change a request id if it has none, so that a caller can repeat it after a lost
answer.

The caller and the controller may each run release 0.1, whose headers have other names
(`metadata.messages.header_names`).
"""

from collections.abc import Callable, Mapping

import msgspec

from broker_agent.agent import AgentCore
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.header_names import (
    check_names,
    knows_new_names,
    with_both_names,
    with_new_names,
)
from metadata.messages.versions import RANGE_HEADER, VERSION_HEADER, Agreed
from metadata.messages.wire import decode_error
from metadata.pseudonyms import check_own_name
from metadata.uuids import UUID7_RANDOM_BITS, uuid7, uuid_text
from runtime.clock import Clock
from runtime.http.origins import may_follow
from runtime.http.requests import ANONYMOUS, Reply, Request, Requester, Unreachable
from runtime.randomness import Random

OnReply = Callable[[Reply], None]
OnError = Callable[[LogbergError, str | None], None]

REQUEST_ID = "x-logberg-request-id"
ON_BEHALF_OF = "x-logberg-on-behalf-of"
CLIENT_ADDRESS = "x-logberg-client-address"
AUTHORIZATION = "authorization"
_LIMIT_S = 40.0
"""How long the agent waits for a controller. Longer than a controller's own limit for a change, so
that the caller gets the controller's answer and not ours."""
_HOPS_MAX = 3
_PASSED_ON = (
    "content-type",
    "accept",
    AUTHORIZATION,
    REQUEST_ID,
    "x-logberg-reason",
    "x-logberg-client-id",
    "x-logberg-expect-offset",
    VERSION_HEADER,
)
_PASSED_BACK = ("content-type", "allow", "retry-after", REQUEST_ID, RANGE_HEADER)
_OF_THE_CLUSTER = ("/v1/metadata", "/v1/snapshots", "/v1/partitions/alter", "/v1/producer-ids")
"""The routes between brokers and controllers, with all paths below them."""
_DIRECTORIES = "/directories"
"""The end of another one, behind the broker's number."""


class Forwarding:
    """Forwards callers' requests."""

    def __init__(
        self,
        agent: AgentCore,
        requester: Requester,
        clock: Clock,
        random: Random,
        *,
        anonymous: bool,
        shows_certificate: bool,
    ) -> None:
        """`anonymous`: also forward requests of callers that are not authenticated.

        `shows_certificate`: the requester's TLS connections show this broker's certificate.
        """
        self._agent = agent
        self._requester = requester
        self._clock = clock
        self._random = random
        self._anonymous = anonymous
        self._shows_certificate = shows_certificate
        self._agreed = Agreed()

    def refusal(self, request: Request) -> LogbergError | None:
        """Return why the agent does not forward a request; None: it does."""
        path = request.path
        of_cluster = any(path == each or path.startswith(f"{each}/") for each in _OF_THE_CLUSTER)
        if of_cluster or (path.startswith("/v1/brokers/") and path.endswith(_DIRECTORIES)):
            return LogbergError(
                ErrorCode.NOT_FOUND,
                f"{request.path[:200]} is a route between brokers and controllers, which a broker "
                "does not forward",
            )
        try:
            check_own_name(request.caller.principal, request.caller.method)
        except LogbergError as error:
            return error
        known = AUTHORIZATION in request.headers or request.caller.principal != ANONYMOUS.principal
        if not known and not self._anonymous:
            return LogbergError(
                ErrorCode.UNAUTHENTICATED,
                "a broker forwards only requests of callers that authenticate: send a bearer token "
                "or a client certificate, or ask a controller",
            )
        return None

    def forward(self, request: Request, reply: OnReply, on_error: OnError) -> None:
        """Send a request to the active controller and pass its answer to `reply`.

        `on_error` gets the error and the request's id, or None. One of the two is called, once.
        """
        try:
            check_names(request.headers)
        except LogbergError as error:
            on_error(error, None)
            return
        said = with_new_names(request.headers)
        headers = {key: value for key, value in said.items() if key in _PASSED_ON}
        if AUTHORIZATION not in headers and request.caller.principal != ANONYMOUS.principal:
            headers[ON_BEHALF_OF] = request.caller.principal
        url = self._agent.controller_url
        if request.caller.address and self._proves(url, headers):
            headers[CLIENT_ADDRESS] = request.caller.address
        if request.method != "GET" and REQUEST_ID not in headers:
            bits = self._random.getrandbits(UUID7_RANDOM_BITS)
            headers[REQUEST_ID] = uuid_text(uuid7(self._clock.wall_ms(), bits))
        forwarded = Request(request.method, request.path, request.body, request.query, headers)
        new_names = knows_new_names(request.headers)

        def answer(given: Reply) -> None:
            reply(given if new_names else _under_both_names(given))

        self._ask(url, forwarded, answer, on_error, _HOPS_MAX)

    def _proves(self, url: str, headers: Mapping[str, str]) -> bool:
        """Return whether a controller sees a broker that forwards somebody's request."""
        if AUTHORIZATION in headers:
            return self._shows_certificate and _is_secure(url)
        # Without a claim it asks as this broker. A broker names no other address for itself.
        return ON_BEHALF_OF in headers

    def _ask(
        self, url: str, request: Request, reply: OnReply, on_error: OnError, hops: int
    ) -> None:
        if AUTHORIZATION in request.headers and not (self._anonymous or _is_secure(url)):
            on_error(
                LogbergError(
                    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                    f"a token is not sent over plain HTTP to {url}: name the controllers by "
                    "https:// in the broker's settings",
                ),
                request.headers.get(REQUEST_ID),
            )
            return

        def answered(answer: Reply | Unreachable) -> None:
            if isinstance(answer, Unreachable):
                self._agreed.forget(url)
                on_error(_unreachable(answer), request.headers.get(REQUEST_ID))
                return
            self._agreed.heard(url, answer.headers)
            leader_url = _named_leader(answer)
            hop = leader_url is not None and leader_url != url and hops > 1
            # The request may hold a token: follow the leader only over an equally secure scheme.
            if leader_url is not None and hop and may_follow(url, leader_url):
                self._ask(leader_url, request, reply, on_error, hops - 1)
                return
            named = with_new_names(answer.headers)
            headers = {key: named[key] for key in _PASSED_BACK if key in named}
            reply(Reply(answer.status, answer.body, headers))

        sent = msgspec.structs.replace(request, headers=self._agreed.named(url, request.headers))
        self._requester.request(url, sent, answered, _LIMIT_S)


def _under_both_names(reply: Reply) -> Reply:
    return msgspec.structs.replace(reply, headers=with_both_names(reply.headers))


def _is_secure(url: str) -> bool:
    return url.startswith("https://")


def _named_leader(answer: Reply) -> str | None:
    """Return the leader's URL from an answer NOT_CONTROLLER; None: another answer, or no URL."""
    if answer.status != ErrorCode.NOT_CONTROLLER.status:
        return None
    content_type = answer.headers.get("content-type", "")
    return decode_error(answer.status, answer.body, content_type).leader_url


def _unreachable(answer: Unreachable) -> LogbergError:
    if answer.refused:
        return LogbergError(
            ErrorCode.NO_QUORUM, f"the controller can't be reached ({answer.reason}); try again"
        )
    return LogbergError(
        ErrorCode.REQUEST_TIMED_OUT,
        f"the controller has not answered ({answer.reason}): a change may have been made; repeat "
        "the request with the same id, and it takes effect only once",
    )
