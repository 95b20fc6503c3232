"""What a file of declared state may hold, and its errors in words.

Rule: a key that is not here is refused. An error names the file, the line, the field and what to
do.
"""

import re
from difflib import get_close_matches
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, UnsetType

from logberg.cli.failure import Failure
from logberg.declared.documents import Document
from metadata.messages.acls import AclEntry

_Configs = dict[str, str | None]


class _Entry(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An object of a file."""


class TopicEntry(_Entry, frozen=True):
    """One of `topics`."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignments: tuple[tuple[int, ...], ...] = ()
    configs: _Configs = msgspec.field(default_factory=dict)


class ConfigsEntry(_Entry, frozen=True):
    """One of `configs`."""

    type: Literal["broker", "group", "client-metrics"]
    name: str
    configs: _Configs


class QuotasEntry(_Entry, frozen=True):
    """One of `quotas`."""

    entity: dict[Literal["user", "client-id", "ip"], str]
    """`<default>` is the default of its type."""
    quotas: dict[str, float | None]


class PasswordSource(_Entry, frozen=True):
    """Where a password comes from: one of the two."""

    env: str | None = None
    """Name of an environment variable."""
    file: str | None = None
    """Path of a file whose first line is the password; relative to the declaring file."""


class UserEntry(_Entry, frozen=True):
    """One of `users`."""

    name: str
    mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    iterations: int | None = None
    password: PasswordSource | None = None


class Entries(_Entry, frozen=True):
    """One document."""

    version: Literal[1] = 1
    part: str = ""
    """Such as 2/3: the second of three files that have a kind's entries together."""
    topics: tuple[TopicEntry, ...] | UnsetType = UNSET
    configs: tuple[ConfigsEntry, ...] | UnsetType = UNSET
    quotas: tuple[QuotasEntry, ...] | UnsetType = UNSET
    acls: tuple[AclEntry, ...] | UnsetType = UNSET
    users: tuple[UserEntry, ...] | UnsetType = UNSET


_TYPES: Final[tuple[tuple[str, type[msgspec.Struct]], ...]] = (
    (r"\$", Entries),
    (r"\$\.topics\[\d+\]", TopicEntry),
    (r"\$\.configs\[\d+\]", ConfigsEntry),
    (r"\$\.quotas\[\d+\]", QuotasEntry),
    (r"\$\.acls\[\d+\]", AclEntry),
    (r"\$\.users\[\d+\]", UserEntry),
    (r"\$\.users\[\d+\]\.password", PasswordSource),
)
"""By the path at which an object stands."""
_CHOICES: Final = {
    ".version": "1: this release knows no other",
    ".type": "broker, group or client-metrics; the configs of a topic stand with the topic",
    ".entity": "user, client-id or ip",
    ".mechanism": "SCRAM-SHA-256 or SCRAM-SHA-512",
}
"""By the end of a path: what may stand there."""
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)


def entries_of(document: Document) -> Entries:
    """Return what a document holds. Raises Failure."""
    try:
        return msgspec.convert(_with_numbers(document.value), Entries, strict=False)
    except msgspec.ValidationError as error:
        raise _in_words(document, str(error)) from None


def _with_numbers(value: Any) -> Any:
    """Return a document with its version as a number: every other one is converted."""
    if isinstance(value, dict) and value.get("version") == "1":
        return {**value, "version": 1}
    return value


def _in_words(document: Document, problem: str) -> Failure:
    """Return an error of msgspec with its place: "Expected `int`, got `str` - at `$.a[0].b`"."""
    what, _, where = problem.rpartition(" - at ")
    # A bad key is "`key` in `$.a[0]`".
    path = where.rpartition(" in ")[2].strip("`") if what else "$"
    what = what or problem
    unknown = _UNKNOWN.fullmatch(what)
    if unknown is not None:
        field, known = unknown[1], _fields_at(path)
        near = get_close_matches(field, known, 1)
        advice = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
        what = f"there is no field {field!r} here; {advice}"
        place = document.where(f"{path}.{field}")
    else:
        value = _value_at(document.value, path)
        place = document.where(path)
        what = what[:1].lower() + what[1:].replace("`", "")
        choices = next((said for end, said in _CHOICES.items() if path.endswith(end)), None)
        if choices is not None and "enum" in what:
            what = f"{what.removeprefix('invalid enum value ')} is not possible; give {choices}"
        elif isinstance(value, str):
            what += f"; the file has {value[:50]!r}"
        elif value is None and "null" in what and "got null" in what:
            what += "; leave the key out, or write [] for none"
    shown = path.removeprefix("$").removeprefix(".")
    return Failure(f"{place}: {shown}{': ' if shown else ''}{what}")


def _fields_at(path: str) -> list[str]:
    for pattern, kind in _TYPES:
        if re.fullmatch(pattern, path):
            return [field.encode_name for field in msgspec.structs.fields(kind)]
    return []


def _value_at(value: Any, path: str) -> Any:
    """Return the value at a path; None if it can't be told."""
    for key, index in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", path):
        try:
            value = value[key] if key else value[int(index)]
        except (KeyError, IndexError, TypeError):
            return None
    return value
