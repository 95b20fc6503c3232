"""Fencing for stores that don't coordinate: remember the largest token, refuse smaller ones.

Rule: a token is accepted if no larger one was seen for its resource. So once the new holder has
written, a paused old holder can't write any more. Before that it still can, and that is no harm:
the new holder has read nothing yet that the old one could change behind its back, if it reads after
its first write, or reads with its own token (Kleppmann, 2016).

Over HTTP a token goes in a header: `Fencing-Token: lock:reports=1742`.
"""

import re
from collections.abc import MutableMapping
from typing import Final

from coordination.backend import Resource
from coordination.errors import Fenced
from coordination.holding import HeldGrant
from coordination.types import Token

HEADER: Final = "Fencing-Token"


class FenceGuard:
    """Keeps the largest token of each resource, beside the data that it guards.

    `seen` is where the tokens are kept. It must be as durable as the guarded data, and change in
    one step with them; the default dict suits only what lives in this process.
    """

    def __init__(self, seen: MutableMapping[str, int] | None = None) -> None:
        self._seen: MutableMapping[str, int] = {} if seen is None else seen

    def accept(self, resource: str, token: int) -> bool:
        """Return whether a request with this token may go on, and remember the token."""
        if token < self._seen.get(resource, 0):
            return False
        self._seen[resource] = token
        return True

    def check(self, resource: str, token: int) -> None:
        """As `accept`. Raises Fenced."""
        if not self.accept(resource, token):
            current = Token(self._seen[resource])
            raise Fenced(
                f"token {token} of {resource!r} is older than {current}", current_token=current
            )


def fencing_header(held: HeldGrant) -> tuple[str, str]:
    """Return a header's name and value for requests that are guarded by a grant."""
    held.check()
    return HEADER, f"{held.full_resource.kind}:{held.full_resource.name}={held.token}"


def parse_fencing_header(value: str) -> tuple[Resource, Token]:
    """Return the resource and token of a header. Raises ValueError."""
    found = re.fullmatch(r"(group|election|lock):(.+)=([0-9]+)", value)
    if found is None:
        raise ValueError(f"{HEADER}: {value!r} isn't kind:name=token")
    kind, name, token = found.groups()
    if kind == "group":
        return Resource("group", name), Token(int(token))
    return Resource("election" if kind == "election" else "lock", name), Token(int(token))
