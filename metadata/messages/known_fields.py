"""Drops the fields that we don't know from a request that a newer client sent.

Rule: it drops fields of objects, by name, at any depth. It does not change or check the value of a
known field; the decoder of the message checks that.
"""

from functools import cache
from typing import Any

from msgspec import inspect


def known_fields(value: Any, message_type: Any) -> Any:
    """Return `value`, decoded to plain dicts and lists, without the fields that the type lacks."""
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
