"""The base classes of messages: structs whose encoded fields are camelCase, as in Kafka's schemas.

Rule: the controller refuses an unknown field in a request of version 1, since the field may be
misspelt. From version 2 on it ignores the field (`metadata.messages.versions`). A client ignores an
unknown field in a reply. So a message must still be right for a reader that ignores a new field.
"""

from typing import Annotated

import msgspec

UuidText = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{21}[AQgw]$", max_length=22)]
"""22 characters; see `metadata.uuids`. `max_length` is needed because `$` matches before a final
newline too."""
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""The bound is needed because JSON has numbers of any length, and clocks and MessagePack don't."""


class RequestMessage(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A request, or a part of one."""


class ReplyMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A reply, or a part of one."""
