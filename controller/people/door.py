"""Puts pseudonyms into a request: its caller, for whom it asks, its query and its message.

Rule: who asks gets a pseudonym first, from the leader, so each request of a person is judged and
recorded under one. Names in a message get pseudonyms only after the request was allowed, and only
if its decision refuses nothing: whoever may not write about somebody writes nothing about them.

Rule: a search of the log by a name is the exception. The log may have the name itself, too, so the
request keeps it, and asks for the pseudonym (`also`) once it was allowed.

Rule: a change is decided only if each pseudonym in it is still somebody's. An erasure that comes
before it ends it.
"""

from collections.abc import Callable, Generator, Iterable
from typing import Any, Final

import msgspec

from controller.people.giving import Giving
from controller.people.hidden_names import without_names
from controller.people.named_fields import (
    changed,
    changed_query,
    check_kept_names,
    named_in,
    named_in_query,
)
from controller.result import ControllerResult, Decide
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import AlterQuotasRequest, DeclaredQuotas, DeleteAclsRequest, EraseRequest
from metadata.people import USER, People, split_at_name
from metadata.pseudonyms import UNKNOWN, check_own_name, is_pseudonym
from runtime.clock import Clock
from runtime.http.requests import Request
from runtime.sockets.attempts import Attempt

ON_BEHALF_OF: Final = "x-logberg-on-behalf-of"
_SUBJECT: Final = "user:"
_SELECTS: Final = (DeleteAclsRequest, EraseRequest)
"""Messages whose names only select something: nobody gets a pseudonym by them."""
_GIVES_NOTHING: Final = (*_SELECTS, AlterQuotasRequest, DeclaredQuotas)
"""Messages by which nobody gets a right."""
Then = Callable[[], None]
Refuse = Callable[[LogbergError], None]


class PeopleDoor:
    """The door of one controller."""

    def __init__(self, giving: Giving, clock: Clock, asks_for: Callable[[Request], str]) -> None:
        """`asks_for`: for whom a request asks. It raises LogbergError for a claim not granted."""
        self._giving = giving
        self._clock = clock
        self._asks_for = asks_for
        self.look = giving.look

    @property
    def people(self) -> People:
        """Who knows the names behind pseudonyms."""
        return self._giving.people

    @property
    def hides_names(self) -> bool:
        """Whether names become pseudonyms here."""
        return not self._giving.idle

    def with_pseudonyms(
        self, request: Request, then: Callable[[Request], None], refuse: Refuse
    ) -> None:
        """Go on with who asks under pseudonyms, now or later; `refuse` is called only later.

        Raises LogbergError.
        """
        if self._giving.idle:
            then(request)
            return
        missing = [each for each in self._asking(request) if self._giving.lacks(each)]
        if missing and self._giving.leads:
            self._give(missing, lambda: then(self.known(request)), refuse)
        elif missing:
            raise LogbergError(ErrorCode.NOT_CONTROLLER)
        else:
            then(self.known(request))

    def known(self, request: Request) -> Request:
        """Return a request with who asks under pseudonyms.

        Raises LogbergError, NOT_CONTROLLER for a caller who has none.
        """
        if self._giving.idle:
            return request
        caller, headers = request.caller, request.headers
        claimed = headers.get(ON_BEHALF_OF, "")
        stands = self._giving.principal(caller.principal)
        if stands != caller.principal:
            caller = msgspec.structs.replace(caller, principal=stands)
        # A claim that nothing grants may be about somebody without pseudonym. It is refused later.
        if claimed and self._found(claimed) != claimed:
            headers = {**headers, ON_BEHALF_OF: self._found(claimed)}
        query = changed_query(request.query, self._found) if request.query else request.query
        if caller is request.caller and headers is request.headers and query is request.query:
            return request
        return msgspec.structs.replace(request, caller=caller, headers=headers, query=query)

    def also(self, words: str) -> str | None:
        """Return words about a person, such as `user:alice`, with the pseudonym for the name.

        None: they name nobody who has a pseudonym. For requests that were allowed: what they search
        may have the name, too, from before there was a pseudonym. Raises LogbergError while names
        can't be opened.
        """
        named = None if self._giving.idle else split_at_name(words)
        if named is None:
            return None
        pseudonym = self._giving.found(USER + named[1])
        return None if pseudonym is None else named[0] + pseudonym.removeprefix(USER)

    def message(self, message: Any) -> Any:
        """Return a message in which people who have pseudonyms are named by them.

        Raises LogbergError.
        """
        return message if self._giving.idle else changed(message, self._found)

    def give_missing(
        self,
        message: Any,
        decision: Callable[[], Decide],
        then: Callable[[Any], None],
        refuse: Refuse,
    ) -> None:
        """Go on with a change in which nobody has a name, now or later. Raises LogbergError.

        A dry run writes nothing, so its names stay. So does a name that only selects something.
        `decision` returns what the change asks for. If that refuses it, nobody gets a pseudonym.
        """
        if self._giving.idle:
            then(message)
            return
        covering = self._giving.covering
        if not covering.nobody:
            check_kept_names(message, covering.covers, self._giving.has_scram)
        named = named_in(message, _SELECTS)
        missing = [each for each in named if self._giving.lacks(each)]
        if not missing or getattr(message, "dry_run", False):
            then(message)
            return
        self._give(missing, lambda: then(self.message(message)), refuse, decision())

    def while_given(self, request: Request, message: Any, decide: Decide) -> Decide:
        """Return a decision that is refused once a pseudonym in its request is nobody's."""
        if self._giving.idle:
            return decide
        named = named_in(message, _GIVES_NOTHING)
        asking = (request.caller.principal, request.headers.get(ON_BEHALF_OF, ""))
        pseudonyms = [each for each in (*asking, *named) if is_pseudonym(each)]
        if not pseudonyms:
            return decide

        def decide_if(image: MetadataImage) -> Generator[None, None, ControllerResult]:
            self._giving.check_given(image, pseudonyms)
            decided = decide(image)
            return (yield from decided) if isinstance(decided, Generator) else decided

        return decide_if

    def attempt(self, attempt: Attempt, said: Iterable[str] = ()) -> Attempt:
        """Return an attempt in which nobody has a name.

        `said`: principals that the request names, beside who asked and what it was about.
        """
        if self._giving.idle:
            return attempt
        recorded, resource = self._giving.recorded, attempt.resource
        about = resource.removeprefix(_SUBJECT) if resource.startswith(_SUBJECT) else ""
        known: dict[str, str] = {}
        for each in (attempt.principal, USER + about.removeprefix(USER), *said):
            stands = recorded(each)
            if stands != each:
                known[each.removeprefix(USER)] = stands.removeprefix(USER)

        def hidden(text: str) -> str:
            return without_names(text, known, recorded, self._giving.covering.covers_word)

        return attempt._replace(
            principal=recorded(attempt.principal),
            resource=_SUBJECT + known.get(about.removeprefix(USER), about) if about else resource,
            reason=hidden(attempt.reason),
            request=hidden(attempt.request),
            answer=hidden(attempt.answer),
        )

    def said_in(self, request: Request, message: Any) -> list[str]:
        """Return the principals that a request names: in its claim, its query and its message."""
        if self._giving.idle:
            return []
        claimed = request.headers.get(ON_BEHALF_OF)
        named = named_in_query(request.query) if request.query else []
        return [*([claimed] if claimed else []), *named, *named_in(message, ())]

    def _asking(self, request: Request) -> list[str]:
        """Return who asks, as far as it is proved. Raises LogbergError."""
        caller, claimed = request.caller, request.headers.get(ON_BEHALF_OF, "")
        if not claimed:
            return [caller.principal]
        try:
            self._asks_for(request)
        except LogbergError:
            # It is refused later, as without pseudonyms. Nothing is written about the name.
            return [caller.principal]
        if claimed == UNKNOWN:
            check_own_name(claimed, caller.method)
        return [caller.principal, claimed]

    def _found(self, principal: str) -> str:
        return self._giving.found(principal) or principal

    def _give(
        self, missing: list[str], then: Then, refuse: Refuse, decide: Decide | None = None
    ) -> None:
        """Give pseudonyms, and go on in a later pass of the loop. Raises LogbergError."""

        def given(error: LogbergError | None) -> None:
            if error is None:
                # Not here: other callers wait for the same commit.
                self._clock.call_soon(then)
            else:
                refuse(error)

        self._giving.give(missing, given, decide)
