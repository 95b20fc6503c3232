"""Notes attempts in the trail: what was refused because of who asks, and perhaps what was not.

Rule: an attempt is noted when it is answered, so the trail counts what callers were told. Changes
that come joined in one request count one by one.
"""

from typing import Any, Final

from controller.access.guard import Asker
from controller.http.call import Call
from controller.people.door import PeopleDoor
from controller.trail.parts import OF_CALLERS as CODES_OF_CALLERS
from controller.trail.parts import AttemptTrail
from metadata.errors import ErrorCode, LogbergError
from metadata.records import AclResourceType, AttemptOutcome
from runtime.http.requests import ANONYMOUS, Request
from runtime.sockets.attempts import Attempt

OF_CALLERS: Final = frozenset(code.status for code in CODES_OF_CALLERS)
"""The statuses that those errors have. Other errors have them too."""
_CLIENT_ID: Final = "x-logberg-client-id"
_PROBES: Final = frozenset({"live", "ready", "metrics"})
"""Accepted requests of these are never recorded: machines ask them all the time."""
_SECRET_BODIES: Final = frozenset(
    {
        "alter_config",
        "alter_configs",
        "alter_scram",
        "apply",
        "erase_subject",
        "expire_token",
        "follow_source",
        "import_records",
        "keep_import_part",
        "make_changes",
        "renew_token",
    }
)
"""Requests that may hold secrets, or an address that is erased. Nobody shall test guesses against
the hash of such a body, so there is none. `make_changes` holds the bodies of others. Where names
have pseudonyms, no body has a hash."""
_KINDS: Final = frozenset(kind.name for kind in AclResourceType)
_WORDS: Final = {
    "topics": "topic",
    "brokers": "broker",
    "users": "user",
    "controllers": "controller",
}
"""By the part of a path behind the version: what its first argument names."""


class AttemptNoting:
    """The way from this room to the trail."""

    def __init__(self, trail: AttemptTrail, people: PeopleDoor) -> None:
        self._trail = trail
        self._people = people
        self.takes_accepted = trail.takes_accepted

    def answered(self, operation: str, call: Call, status: int) -> None:
        """Note a request that was answered, if the trail is to have it."""
        error, code = call.refused, call.refused_with
        if code in CODES_OF_CALLERS:
            outcome = AttemptOutcome.REFUSED
        elif self.takes_accepted and status < 300 and operation not in _PROBES:
            outcome = AttemptOutcome.ACCEPTED
        else:
            return
        asker = None if call.access is None else call.access.asker
        known = error if isinstance(error, LogbergError) else None
        self._note(operation, call.request, call.message, asker, code, known, status, outcome)

    def refused(
        self, name: str, request: Request, message: Any, asker: Asker, error: LogbergError
    ) -> None:
        """Note a request that asks no route, if it was refused because of who asks."""
        if error.code not in CODES_OF_CALLERS:
            return
        status, outcome = error.code.status, AttemptOutcome.REFUSED
        self._note(name, request, message, asker, error.code, error, status, outcome)

    def passed(self, name: str, asker: Asker, error: LogbergError) -> None:
        """Note a request that is answered only because rights are logged."""
        self._trail.note(
            Attempt(
                _who(asker.principal),
                "",
                name,
                _resource(error),
                asker.host,
                error.code.value,
                str(error.details.get("lacks", "")),
            ),
            AttemptOutcome.WOULD_BE_REFUSED,
        )

    def _note(
        self,
        operation: str,
        request: Request,
        message: Any,
        asker: Asker | None,
        code: ErrorCode | None,
        error: LogbergError | None,
        status: int,
        outcome: AttemptOutcome,
    ) -> None:
        caller = request.caller
        principal = caller.principal if asker is None else asker.principal
        resource = "" if error is None else _resource(error)
        if not resource:
            resource = _resource_of_path(request.path)
        hides = operation in _SECRET_BODIES or self._people.hides_names
        reason = answer = ""
        if error is not None:
            reason = str(error.details.get("lacks", "")) or error.message
            answer = f"{status} {error.message}"
        attempt = Attempt(
            _who(principal),
            caller.method,
            operation,
            resource,
            caller.address,
            "" if code is None else code.value,
            reason,
            caller.principal if principal != caller.principal else "",
            f"{request.method} {request.path}".strip(),
            request.headers.get(_CLIENT_ID, ""),
            b"" if hides else request.body,
            answer or str(status),
        )
        said = self._people.said_in(request, message)
        self._trail.note(self._people.attempt(attempt, said), outcome)


def _who(principal: str) -> str:
    return "" if principal == ANONYMOUS.principal else principal


def _resource(error: LogbergError) -> str:
    """Return what a missing right is on, in the audit's words: `topic:orders`."""
    what = str(error.details.get("lacks", "")).partition(" on ")[2]
    kind, _, name = what.partition(" ")
    return f"{kind.lower()}:{name}" if kind in _KINDS and name else ""


def _resource_of_path(path: str) -> str:
    """Return what a path names: `topic:orders` for `/v1/topics/orders`."""
    parts = path.split("/")
    word = _WORDS.get(parts[2]) if len(parts) > 3 else None
    return f"{word}:{parts[3]}" if word and parts[3] else ""
