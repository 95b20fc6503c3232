"""One route of the HTTP interface: what it is called, what it takes and what it answers.

`controller.http.routes` lists all routes.
"""

from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """A query parameter."""

    name: str
    kind: str
    """As in a JSON schema: string, integer or boolean."""
    summary: str


CONSISTENCY = Parameter(
    "consistency",
    "string",
    "linearizable (default; the active controller answers) or stale (any node answers at once)",
)
MIN_OFFSET = Parameter(
    "minOffset", "integer", "any node answers, once it has applied everything before this offset"
)
READS = (CONSISTENCY, MIN_OFFSET)
FORCE = Parameter(
    "force", "boolean", "also if it is online, or the last in-sync replica of a partition"
)
PAGE = (
    Parameter("limit", "integer", "the most entries (default: all); the answer may have fewer"),
    Parameter("continuation", "string", "continue after an earlier answer, from the same state"),
)
DRY_RUN = Parameter("dryRun", "boolean", "decide and answer, but write nothing")


class Route(NamedTuple):
    """One operation."""

    method: str
    path: str
    """`{name}` stands for one segment."""
    name: str
    summary: str
    reply: Any
    """Type of the message of a success; None for other content."""
    request: Any = None
    parameters: tuple[Parameter, ...] = ()
    content: str = ""
    """Content type, if the reply isn't a message."""
    changes: bool = False
    """The route writes. It takes `x-logberg-request-id`, and a repeated request is done once."""
    always: bool = False
    """A node answers also when it refuses all other requests."""
    status: int = 200
    """HTTP status of a success."""
