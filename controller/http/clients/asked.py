"""What a function that answers a route gets: the request, with what was read from it."""

from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple

import msgspec

from controller.access.listing import ListFilter
from controller.config import ControllerConfig
from controller.http.node_view import View
from controller.http.pages import Pages
from controller.leader.parts import LeaderParts
from controller.leader.requested_change import RequestedChange
from metadata.messages.parts import LongMessage
from metadata.people import People
from metadata.person_opener import NO_OPENER, PersonOpener
from runtime.http.requests import Request


class Asked(NamedTuple):
    """One request."""

    request: Request
    arguments: Mapping[str, str]
    """What stands in the path at the places in braces."""
    message: Any = None
    """The body of a change, decoded; None if the route has none."""
    shown: Callable[[], ListFilter | None] = lambda: None
    """Returns what the asker of a list may see, by the newest entries; None: all of it."""


class ReadContext(NamedTuple):
    """What reads need besides the image."""

    config: ControllerConfig
    pages: Pages
    opener: PersonOpener = NO_OPENER
    """Opens names that an answer shows."""
    people: People | None = None
    """Finds the pseudonym of a name; None: nobody can here."""


MakeChange = Callable[[LeaderParts, Asked], RequestedChange]
"""Raises LogbergError for a request that needs no image to be refused."""
Read = Callable[[View, Asked, ReadContext], msgspec.Struct | LongMessage]
"""Raises LogbergError."""
ReadInSteps = Callable[[View, Asked, ReadContext], Generator[None, None, LongMessage]]
"""Raises LogbergError at once; its steps raise none."""
