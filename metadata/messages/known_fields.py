"""Drops what a message does not have from what a newer client sent.

Rule: only fields of objects are dropped, by name, at any depth. What a known field holds is left
as it is, and is judged where the message is decoded.
"""

from functools import cache
from typing import Any

from msgspec import inspect


def known_fields(value: Any, message_type: Any) -> Any:
    """Return `value`, as decoded without a type, without fields that `message_type` lacks."""
    return _known(value, _kind_of(message_type))


@cache
def _kind_of(message_type: Any) -> inspect.Type:
    return inspect.type_info(message_type)


def _known(value: Any, kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.Metadata):
        return _known(value, kind.type)
    if isinstance(kind, inspect.UnionType):
        chosen = next((each for each in kind.types if _fits(value, each)), None)
        return value if chosen is None else _known(value, chosen)
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        kinds = {field.encode_name: field.type for field in kind.fields}
        return {name: _known(held, kinds[name]) for name, held in value.items() if name in kinds}
    if isinstance(kind, inspect.CollectionType) and isinstance(value, list):
        return [_known(held, kind.item_type) for held in value]
    return value


def _fits(value: Any, kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.Metadata):
        return _fits(value, kind.type)
    if isinstance(kind, inspect.StructType):
        return isinstance(value, dict)
    return isinstance(kind, inspect.CollectionType) and isinstance(value, list)
