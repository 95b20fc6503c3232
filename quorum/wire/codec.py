"""MessagePack, for the core's commands and for the frames between controllers.

Rule: decoding never runs code, never nests deeply, and never allocates more than the input's size
justifies. Arrays come back as tuples, because the core tells a call with arguments from one without
by `tuple`. Inside the core this module replaces `pickle` (`quorum.raft.core_world`), so its
functions have the names `dumps` and `loads`.
"""

from typing import Any

import msgpack

from runtime.links.interface import FRAME_BYTES_MAX


class BadBytesError(Exception):
    """The bytes were not written by this codec."""


def _refuse_extension(code: int, _data: bytes) -> Any:
    raise BadBytesError(f"extension type {code}")


def dumps(value: Any) -> bytes:
    """Encode; lists and tuples alike become arrays."""
    return msgpack.packb(value)  # type: ignore[no-any-return]


def loads(data: bytes) -> Any:
    """Decode; arrays become tuples. Raises BadBytesError."""
    if len(data) > FRAME_BYTES_MAX:
        raise BadBytesError(f"{len(data)} bytes are more than {FRAME_BYTES_MAX}")
    try:
        return msgpack.unpackb(data, use_list=False, ext_hook=_refuse_extension)
    except Exception as error:
        # Not only ValueError: deep nesting raises StackError, bad keys TypeError.
        raise BadBytesError(f"not MessagePack as we write it: {error}") from error
