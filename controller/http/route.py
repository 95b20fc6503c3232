"""One route of the HTTP interface: what it is called, what it takes and what it answers.

`controller.http.routes` lists all routes.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple


class Parameter(NamedTuple):
    """A query parameter."""

    name: str
    kind: str
    """As in a JSON schema: string, integer or boolean."""
    summary: str
    values: tuple[str, ...] = ()
    """The only values; empty: others are possible."""
    least: int | None = None
    """The smallest number."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its values."""
        schema: dict[str, Any] = {"type": self.kind}
        if self.values:
            schema["enum"] = list(self.values)
        if self.least is not None:
            schema |= {"minimum": self.least, "maximum": NUMBER_MAX}
        return schema


NUMBER_MAX = 10**18 - 1
"""Numbers in a query have 18 digits at most."""
CONSISTENCY = Parameter(
    "consistency",
    "string",
    "linearizable (default; the active controller answers) or stale (any node answers at once)",
    ("linearizable", "stale"),
)
MIN_OFFSET = Parameter(
    "minOffset",
    "integer",
    "any node answers, once it has applied everything before this offset",
    least=0,
)
READS = (CONSISTENCY, MIN_OFFSET)
FORCE = Parameter(
    "force", "boolean", "also if it is online, or the last in-sync replica of a partition"
)
PAGE = (
    Parameter(
        "limit", "integer", "the most entries (default: all); the answer may have fewer", least=1
    ),
    Parameter("continuation", "string", "continue after an earlier answer, from the same state"),
)
DRY_RUN = Parameter("dryRun", "boolean", "decide and answer, but write nothing")


_NUMBERED = (
    "/v1/brokers/{id}",
    "/v1/controllers/{id}",
    "/v1/partitions/{topic}/{partition}",
    "/v1/segments/{base}",
)


def path_parameters(path: str) -> Iterator[Parameter]:
    """Yield what stands in braces in a path."""
    for name in (part[1:-1] for part in path.split("/") if part.startswith("{")):
        if name in ("id", "partition", "base") and path.startswith(_NUMBERED):
            yield Parameter(name, "integer", "", least=0)
        else:
            yield Parameter(name, "string", "")


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
    joins_changes: bool = False
    """The request has changes in it, each with a request id of its own."""
    long_list: str = ""
    """The field of the request that may be a very long list. Then the request is decoded in steps,
    and its message is a `LongRequest`."""
    always: bool = False
    """A node answers also when it refuses all other requests."""
    status: int = 200
    """HTTP status of a success."""
    other: Any = None
    """Type of the reply in another format, if a parameter asks for one."""
    own_error: bool = False
    """An answer that is no success may have the type of `reply`, too."""
