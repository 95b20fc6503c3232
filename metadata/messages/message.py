"""What every message is: a struct whose fields are camelCase outside, as in Kafka's schemas.

Rule: a request of version 1 refuses a field that it doesn't know, since its sender believes that
it counts; from version 2 on the field is ignored (`metadata.messages.versions`). A reply may have
fields that an older reader doesn't know, and the reader skips them. So a field that is added must
be one that may be skipped.
"""

from typing import Annotated

import msgspec

UuidText = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{21}[AQgw]$", max_length=22)]
"""22 characters; see `metadata.uuids`. The length counts: `$` matches before a last newline too."""
Count = Annotated[int, msgspec.Meta(ge=0)]


class RequestMessage(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a client sends, and every part of it."""


class ReplyMessage(msgspec.Struct, frozen=True, rename="camel"):
    """What a node answers, and every part of it."""
