"""How large a request is, as the controllers count it, and what to do with one that is too large.

Rule: a controller decodes a request in one step, so it takes at most so many objects and values
(`metadata.messages.wire`). An apply is one request, since it is all or nothing.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from logberg.client.client_errors import ClientError
from metadata.errors import ErrorCode
from metadata.messages.declared import DeclaredKind
from metadata.messages.wire import OBJECTS_MAX, VALUES_MAX

BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""As `runtime.http.limits` has it for controllers."""


class RequestSize(NamedTuple):
    """What a controller counts."""

    objects: int
    values: int
    """Commas, which is one less than values in each object and list."""
    length: int
    """Bytes."""

    def fits(self, reserve: int = 0) -> bool:
        """Whether a controller takes a request of this size, and of so much more."""
        return (
            self.objects + reserve <= OBJECTS_MAX
            and self.values + reserve <= VALUES_MAX
            and self.length + 1024 * reserve <= BODY_BYTES_MAX
        )

    def and_more(self, objects: int, values: int, length: int) -> "RequestSize":
        """Return the size with so much more."""
        return RequestSize(self.objects + objects, self.values + values, self.length + length)


def size_of(value: Any) -> RequestSize:
    """Return the size of a value in JSON."""
    body = msgspec.json.encode(value)
    return RequestSize(body.count(b"{"), body.count(b","), len(body))


def check_apply(body: Mapping[str, Any]) -> None:
    """Refuse an apply that every controller would refuse. Raises ClientError BODY_TOO_LARGE."""
    if size_of(body).fits():
        return
    sizes = {kind.value: size_of(body[kind]) for kind in DeclaredKind if body.get(kind)}
    parts = (
        f"{name} has {size.objects:,} objects, {size.values:,} values, {size.length:,} bytes"
        for name, size in sorted(sizes.items(), key=lambda one: -one[1].values)
    )
    advice = "divide the files by kind, or by names within a kind, and apply one after the other"
    if body.get("prune"):
        advice += "; with prune a kind must stay whole, because what isn't declared is removed"
    raise ClientError(
        ErrorCode.BODY_TOO_LARGE.value,
        f"an apply is one change, all of it or nothing, and takes at most {OBJECTS_MAX:,} "
        f"objects, {VALUES_MAX:,} values and 4 MiB; here {'; '.join(parts)}. To apply more, "
        f"{advice}. `logberg export --folder` writes files that fit",
    )
