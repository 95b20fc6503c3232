"""MessagePack for the core's commands and for the frames between controllers.

Rule: nothing that is read can run, nest deeply or claim a size that it doesn't have; arrays come
back as tuples, since the core tells a call with arguments from one without by `tuple`. This
module stands in for `pickle` inside the core (`quorum.raft.core_world`), so it has its two names.
"""

from typing import Any

import msgpack  # type: ignore[import-untyped]

from runtime.links import FRAME_BYTES_MAX


class BadBytesError(Exception):
    """Not something this codec wrote."""


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
