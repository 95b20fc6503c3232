"""Where requests name people: fields of messages, and parts of queries.

A principal is `User:NAME`. Quotas and erasures write the name alone.

Rule: where a name in a request can't become a pseudonym, the request is refused: the log would hold
the name.
"""

from collections.abc import Callable, Iterator, Mapping
from operator import is_not
from typing import Any, Final

import msgspec

from metadata.errors import ErrorCode, LogbergError
from metadata.messages import (
    AclEntry,
    AclFilter,
    AlterQuotasRequest,
    AlterScramRequest,
    ApplyRequest,
    CreateAccessTokenRequest,
    CreateAclsRequest,
    CreateTokenRequest,
    DeclaredQuotas,
    DeleteAclsRequest,
    EraseRequest,
    FollowSourceRequest,
    ImportPartRequest,
    ImportRequest,
    QuotaAlteration,
    QuotaEntityPart,
    ReinstateCertificatesRequest,
    RevokeCertificatesRequest,
)
from metadata.people import USER
from metadata.pseudonyms import is_pseudonym

Change = Callable[[str], str]
"""Takes a principal, and returns what stands for it."""
_SUBJECT: Final = "user:"
_LISTS: Final[dict[type, tuple[str, ...]]] = {
    AlterQuotasRequest: ("entries",),
    ApplyRequest: ("acls", "quotas"),
    CreateAclsRequest: ("acls",),
    DeclaredQuotas: ("entity",),
    DeleteAclsRequest: ("filters",),
    QuotaAlteration: ("entity",),
}
"""By message: its fields that are lists of messages which name people."""
_PRINCIPALS: Final[dict[type, tuple[str, ...]]] = {
    AclEntry: ("principal",),
    AclFilter: ("principal",),
    CreateAccessTokenRequest: ("principal",),
    CreateTokenRequest: ("owner", "renewers"),
}
"""By message: its fields that are principals, or lists of them."""
_NAMING: Final = frozenset({*_LISTS, *_PRINCIPALS, QuotaEntityPart, EraseRequest})
_PRINCIPALS_OF_QUERY: Final = ("principal", "owner")
_NAMES_OF_QUERY: Final = ("user",)


def changed(message: Any, change: Change, leave: tuple[type, ...] = ()) -> Any:
    """Return a message with each principal changed; the same one if none does.

    `leave`: messages that stay as they are.
    """
    kind = type(message)
    if kind not in _NAMING or kind in leave:
        return message
    fields: dict[str, Any] = {}
    for name in _LISTS.get(kind, ()):
        before = getattr(message, name)
        after = [changed(each, change, leave) for each in before]
        if any(map(is_not, after, before)):
            fields[name] = tuple(after)
    own = _own_names(kind, message, change)
    fields |= {name: value for name, value in own if getattr(message, name) != value}
    return msgspec.structs.replace(message, **fields) if fields else message


def _own_names(kind: type, message: Any, change: Change) -> Iterator[tuple[str, Any]]:
    """Yield each field of a message that is a principal, or names one, and its changed value."""
    for name in _PRINCIPALS.get(kind, ()):
        value = getattr(message, name)
        if isinstance(value, str):
            yield name, change(value)
        elif value is not None:
            yield name, tuple(map(change, value))
    if kind is AclEntry or kind is AclFilter:
        # A right on a user names a principal as its resource (KIP-373).
        if message.resource_type == "USER" and message.resource_name is not None:
            yield "resource_name", change(message.resource_name)
    elif kind is QuotaEntityPart:
        if message.entity_type == "user" and message.entity_name is not None:
            yield "entity_name", _bare(message.entity_name, "", change)
    elif kind is EraseRequest and message.subject.startswith(_SUBJECT):
        yield "subject", _bare(message.subject, _SUBJECT, change)


def named_in(message: Any, leave: tuple[type, ...]) -> list[str]:
    """Return the principals that a message names, but for the messages in `leave`."""
    found: list[str] = []

    def note(principal: str) -> str:
        found.append(principal)
        return principal

    changed(message, note, leave)
    return found


def changed_query(query: Mapping[str, str], change: Change) -> Mapping[str, str]:
    """Return a query with each principal changed; the same one if none does."""
    found: dict[str, str] = {}
    for name in _PRINCIPALS_OF_QUERY:
        if name in query:
            found[name] = change(query[name])
    for name in _NAMES_OF_QUERY:
        if name in query:
            found[name] = _bare(query[name], "", change)
    return {**query, **found} if any(query[name] != found[name] for name in found) else query


def named_in_query(query: Mapping[str, str]) -> list[str]:
    """Return the principals that a query names."""
    found: list[str] = []

    def note(principal: str) -> str:
        found.append(principal)
        return principal

    changed_query(query, note)
    return found


def check_kept_names(
    message: Any, covers: Callable[[str], bool], has_scram: Callable[[str], bool]
) -> None:
    """Refuse a message that would put a name into the log which has a pseudonym.

    `has_scram`: whether a user has SCRAM credentials; such a name is in the log in clear. Raises
    LogbergError INVALID_REQUEST.
    """
    if isinstance(message, AlterScramRequest):
        _check_scram("upsertions", [each.name for each in message.upsertions], covers)
        gone = [each.name for each in message.deletions if not has_scram(each.name)]
        _check_scram("deletions", gone, covers)
    elif isinstance(message, ApplyRequest):
        _check_scram("users", [each.name for each in message.users], covers)
    elif isinstance(message, RevokeCertificatesRequest | ReinstateCertificatesRequest):
        who = message.principal
        if who is not None and (covers(who) or is_pseudonym(who)):
            raise _refused(
                "principal",
                "a certificate has a name and no pseudonym: revoke each certificate by its serial",
            )
    elif isinstance(message, ImportRequest | ImportPartRequest | FollowSourceRequest):
        raise _refused(
            "records",
            "they hold names in clear, and the setting `pseudonyms` keeps names out of the log: "
            "import before you set it",
        )
    for entry in _entries(message):
        if entry.resource_type == "USER" and entry.pattern_type == "PREFIXED":
            raise _refused(
                "acls",
                "no prefix of a user's name fits a pseudonym: name each user, or * for all",
            )


def _entries(message: Any) -> tuple[AclEntry, ...]:
    return message.acls if isinstance(message, CreateAclsRequest | ApplyRequest) else ()


def _check_scram(field: str, names: list[str], covers: Callable[[str], bool]) -> None:
    for name in names:
        if covers(USER + name):
            raise _refused(
                field,
                f"the setting `pseudonyms` covers {name[:50]!r}, and a SCRAM login shows its name: "
                "give the user a name that the setting does not cover",
            )


def _bare(text: str, prefix: str, change: Change) -> str:
    """Change a name that stands without `User:`."""
    return prefix + change(USER + text.removeprefix(prefix)).removeprefix(USER)


def _refused(field: str, why: str) -> LogbergError:
    return LogbergError(ErrorCode.INVALID_REQUEST, f"{field}: {why}", {"field": field})
