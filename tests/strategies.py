"""Hypothesis strategies for every record and message, read from the classes themselves.

Rule: a class that is added is tested without a line here.
"""

from functools import cache
from typing import Any

from hypothesis import strategies as st
from msgspec import Raw, inspect

from metadata.messages.message import ReplyMessage, RequestMessage
from metadata.records import RECORD_CLASSES, Record
from metadata.uuids import uuid_text

INT64 = (-(2**63), 2**63 - 1)
_UUID_PATTERN_START = "^[A-Za-z0-9_-]{21}"

uuids = st.binary(min_size=16, max_size=16)
uuid_texts = uuids.map(uuid_text)
_words = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
_json_values = st.recursive(
    st.none() | st.booleans() | st.integers(*INT64) | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=5,
)


@cache
def of_class(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Instances of a record, a part of one, or a message."""
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    fields = {field.name: _of_type(field.type) for field in info.fields}
    return st.fixed_dictionaries(fields).map(lambda values: cls(**values))


def records() -> st.SearchStrategy[Record]:
    """Any record with legal fields; not what makes sense after another."""
    return st.sampled_from(RECORD_CLASSES).flatmap(of_class)


def record_lists(max_size: int = 8) -> st.SearchStrategy[list[Record]]:
    """Records as a batch may hold them."""
    return st.lists(records(), max_size=max_size)


def message_classes() -> list[type[Any]]:
    """Every message and every part of one."""
    found: list[type[Any]] = []
    waiting: list[type[Any]] = [RequestMessage, ReplyMessage]
    while waiting:
        children = waiting.pop().__subclasses__()
        found += children
        waiting += children
    return sorted(found, key=lambda cls: cls.__name__)


def _of_type(found: inspect.Type) -> st.SearchStrategy[Any]:
    match found:
        case inspect.NoneType():
            return st.none()
        case inspect.RawType():
            # Each digit is a value in JSON and in MessagePack.
            return st.sampled_from("0123456789").map(lambda digit: Raw(digit.encode()))
        case inspect.BoolType():
            return st.booleans()
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case inspect.IntType(ge=low, le=high):
            least = INT64[0] if low is None else low
            most = INT64[1] if high is None else high
            return st.integers(least, most) | st.sampled_from((least, most))
        case inspect.FloatType():
            # JSON has no infinity, and no rule lets one into the log.
            return st.floats(allow_nan=False, allow_infinity=False)
        case inspect.StrType(pattern=pattern) if pattern and pattern.startswith(
            _UUID_PATTERN_START
        ):
            return uuid_texts
        case inspect.StrType(pattern=pattern) if pattern:
            return st.from_regex(pattern.rstrip("$") + r"\Z", fullmatch=True)
        case inspect.StrType(min_length=shortest):
            return _words.map(lambda text: text or "x" * (shortest or 0))
        case inspect.BytesType(min_length=shortest, max_length=longest):
            return st.binary(min_size=shortest or 0, max_size=longest or 40)
        case inspect.EnumType(cls=enum):
            return st.sampled_from(list(enum))
        case inspect.VarTupleType(item_type=item, min_length=shortest, max_length=longest):
            most = 4 if longest is None else min(4, longest)
            return st.lists(_of_type(item), min_size=shortest or 0, max_size=most).map(tuple)
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(_of_type(key), _of_type(value), max_size=3)
        case inspect.UnionType(types=types):
            return st.one_of(*(_of_type(t) for t in types))
        case inspect.StructType(cls=cls):
            return of_class(cls)
        case inspect.AnyType() | inspect.CustomType(cls=_):
            return _json_values
    raise TypeError(f"no strategy for {found}")
