"""The scalar types of records and messages, with the ranges of Kafka's schemas.

Rule: the decoder checks ranges, and nothing else does. A constructor of a record or message checks
nothing.
"""

from typing import Annotated

from msgspec import Meta

Uuid = Annotated[bytes, Meta(min_length=16, max_length=16)]
"""16 raw bytes; `metadata.uuids` converts them to text."""
Digest = Annotated[bytes, Meta(min_length=32, max_length=32)]
"""A SHA-256: 32 raw bytes."""
Int8 = Annotated[int, Meta(ge=-(2**7), le=2**7 - 1)]
Int16 = Annotated[int, Meta(ge=-(2**15), le=2**15 - 1)]
UInt16 = Annotated[int, Meta(ge=0, le=2**16 - 1)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
BrokerId = Int32
"""The id of a broker or controller. In some fields -1 means none."""
