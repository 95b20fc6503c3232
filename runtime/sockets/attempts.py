"""An attempt: what somebody asked, and why it was refused.

Rule: whoever refuses a request because of who asks makes one of these for each refusal. It goes to
`Refusals.on_attempt`, or is dropped where nobody keeps a trail. It never holds a credential. What a
caller chose stands in quotation marks in a reason or an answer (`!r`), so that the trail can leave
it out where names are hidden.
"""

from typing import NamedTuple


class Attempt(NamedTuple):
    """One request, as far as the trail tells it."""

    principal: str
    """Who asked, as authenticated; empty: nobody who was."""
    auth_method: str
    operation: str
    """What was asked; empty: `request` says the path, and the controller finds the route."""
    resource: str
    """What it is about, in words such as topic:orders; empty: nothing by name."""
    address: str
    """The IP address; empty on a unix socket."""
    code: str
    """The error's code; empty: it was accepted."""
    reason: str
    """Why it was refused."""
    through: str = ""
    """The broker that asked for the principal; empty: nobody."""
    request: str = ""
    """Method and path."""
    client_id: str = ""
    body: bytes = b""
    """Only its hash is kept."""
    answer: str = ""
    """Status and sentence."""
