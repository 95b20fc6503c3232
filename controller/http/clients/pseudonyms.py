"""Answers `GET /v1/pseudonyms`: who is behind a pseudonym, and which pseudonym a person has.

Rule: an answer shows names, and nothing keeps them. A name that can't be opened here is null.
Whoever asks for a name hears that nobody has it only from a controller that could open all names.
"""

from collections.abc import Generator
from typing import Final

from controller.http.clients.asked import Asked, ReadContext
from controller.http.clients.paging import page_of
from controller.http.describe import readable_offset
from controller.http.node_view import View
from controller.managers.sealing_key import keys_awaited
from metadata.errors import ErrorCode, LogbergError
from metadata.image.erasures import ErasuresImage
from metadata.messages import ListPseudonymsReply, Person
from metadata.messages.parts import LongMessage
from metadata.people import USER

_STEP: Final = 8
"""Names between two yields: one takes a tenth of a millisecond to open."""


def list_pseudonyms(
    view: View, asked: Asked, context: ReadContext
) -> Generator[None, None, LongMessage]:
    """`GET /v1/pseudonyms`. Raises LogbergError."""
    query, more = asked.request.query, None
    erasures = view.image.erasures
    if "name" in query or "pseudonym" in query:
        chosen = _chosen(erasures, asked, context)
    else:
        chosen, more = page_of(view, asked, context, "pseudonyms", erasures.order, str)
    head = ListPseudonymsReply(
        offset=readable_offset(view.image),
        epoch=view.image.epoch,
        people=(),
        age_ms=view.age_ms,
        continuation=more,
    )
    return _listed(head, erasures, chosen, context)


def _chosen(erasures: ErasuresImage, asked: Asked, context: ReadContext) -> list[str]:
    """Return the pseudonym that a request names, or whose name it says, if there is one.

    Raises LogbergError.
    """
    query = asked.request.query
    found = None
    if "name" in query:
        found = _of_name(erasures, query["name"].removeprefix(USER), context)
        if "pseudonym" in query and query["pseudonym"].removeprefix(USER) != found:
            return []
    else:
        found = query["pseudonym"].removeprefix(USER)
    return [found] if found is not None and found in erasures.pseudonyms else []


def _of_name(erasures: ErasuresImage, name: str, context: ReadContext) -> str | None:
    """Return the pseudonym of a name; None: nobody of this name has one. Raises LogbergError."""
    if not erasures.pseudonyms:
        return None
    people = context.people
    if people is None:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST,
            "name: nobody can open names where a past state is read; ask a controller",
            {"field": "name"},
        )
    if not people.has_keys or not people.has_followed(erasures):
        raise keys_awaited()
    return people.pseudonym_of(name)


def _listed(
    head: ListPseudonymsReply, erasures: ErasuresImage, chosen: list[str], context: ReadContext
) -> Generator[None, None, LongMessage]:
    rows = []
    for place, pseudonym in enumerate(chosen, 1):
        record = erasures.pseudonyms.get(pseudonym)
        name = None if record is None else context.opener.name_of(USER + pseudonym)
        rows.append(Person(pseudonym, name))
        if place % _STEP == 0:
            yield
    return LongMessage(head, "people", iter(rows), len(rows))
