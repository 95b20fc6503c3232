"""Every whole number of a request has bounds: JSON has numbers of any length, and clocks don't."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from metadata.messages.message import RequestMessage
from tests.strategies import message_classes

REQUESTS = [cls for cls in message_classes() if issubclass(cls, RequestMessage)]


def unbounded(kind: Any, path: str, within: frozenset[type] = frozenset()) -> Iterator[str]:
    """The paths of whole numbers without a least or a largest value."""
    inspect = msgspec.inspect
    match kind:
        case inspect.IntType():
            if None in (kind.ge, kind.le):
                yield path
        case inspect.Metadata():
            yield from unbounded(kind.type, path, within)
        case inspect.UnionType():
            for one in kind.types:
                yield from unbounded(one, path, within)
        case inspect.VarTupleType() | inspect.ListType():
            yield from unbounded(kind.item_type, f"{path}[]", within)
        case inspect.DictType():
            yield from unbounded(kind.value_type, f"{path}{{}}", within)
        case inspect.StructType() if kind.cls not in within:
            for field in kind.fields:
                yield from unbounded(field.type, f"{path}.{field.name}", within | {kind.cls})


@pytest.mark.parametrize("cls", REQUESTS, ids=lambda cls: cls.__name__)
def test_no_whole_number_of_a_request_is_unbounded(cls: type[RequestMessage]) -> None:
    assert list(unbounded(msgspec.inspect.type_info(cls), cls.__name__)) == []


def test_an_unbounded_one_would_be_noticed() -> None:
    class Careless(RequestMessage, frozen=True):
        numbers: tuple[int | None, ...]

    found = list(unbounded(msgspec.inspect.type_info(Careless), "it"))
    assert found == ["it.numbers[]"]
