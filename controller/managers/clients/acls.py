"""Adds and removes access control entries (KIP-140, 290, 801).

Rules of Kafka's AclControlManager: each entry is judged by itself, and a request writes those that
pass. An entry that is there already is a success and no record. A filter removes every entry that
it matches, and an entry that two filters match is removed once. A host may be a range of addresses
from metadata.version 32 (4.4-IV1) on.
"""

from collections.abc import Callable, Generator
from enum import IntEnum
from typing import Final, TypeVar

from controller.result import ControllerResult
from metadata.acl_names import CLUSTER_NAMES, is_cluster_name
from metadata.address_ranges import is_range, range_of
from metadata.errors import ErrorCode, LogbergError
from metadata.features import METADATA_VERSION
from metadata.image import MetadataImage
from metadata.image.acls import AclContent
from metadata.messages import (
    AclDescription,
    AclEntry,
    AclFilter,
    CreateAclsReply,
    CreateAclsRequest,
    CreatedAcl,
    DeleteAclsReply,
    DeleteAclsRequest,
    DeletedAcls,
    error_reply,
)
from metadata.plain_text import check_plain
from metadata.record_levels import missing_level
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    Record,
    RemoveAccessControlEntryRecord,
)
from metadata.uuids import uuid4_from, uuid_text
from runtime.randomness import Random

SHOWN_MAX: Final = 1_000
"""The most removed entries that an answer shows."""
TEXT_MAX: Final = 1_000
"""Characters of a name, a principal or a host."""
_STEP: Final = 256
"""Entries between two yields."""

Code = TypeVar("Code", bound=IntEnum)
Matches = Callable[[AccessControlEntryRecord], bool]


class AclManager:
    """Decides about access control entries."""

    def __init__(self, random: Random) -> None:
        """`random` draws the entries' uuids."""
        self._random = random

    def create(
        self, image: MetadataImage, request: CreateAclsRequest
    ) -> Generator[None, None, ControllerResult]:
        """Add entries; yields every 256."""
        records: list[AccessControlEntryRecord] = []
        added: dict[AclContent, bytes] = {}
        results = []
        for number, entry in enumerate(request.acls):
            try:
                content = checked_content(f"acls[{number}]", entry)
                _check_level(image, content)
            except LogbergError as error:
                results.append(CreatedAcl(error=error_reply(error)))
                continue
            there = image.acls.by_content.get(content, ())
            known = there[0] if there else added.get(content)
            if known is None:
                known = added[content] = self._new_id(image)
                records.append(AccessControlEntryRecord(known, *_in_record_order(content)))
                results.append(CreatedAcl(id=uuid_text(known)))
            else:
                results.append(CreatedAcl(id=uuid_text(known), existed=True))
            if number % _STEP == _STEP - 1:
                yield
        return ControllerResult(records, CreateAclsReply(tuple(results), dry_run=request.dry_run))

    def delete(
        self, image: MetadataImage, request: DeleteAclsRequest
    ) -> Generator[None, None, ControllerResult]:
        """Remove the entries that match; looks at each entry once, and yields every 256."""
        filters: list[Matches | LogbergError] = []
        for number, each in enumerate(request.filters):
            try:
                filters.append(checked_filter(f"filters[{number}]", each))
            except LogbergError as error:
                filters.append(error)
        counts = [0] * len(filters)
        shown: list[list[AclDescription]] = [[] for _ in filters]
        room = SHOWN_MAX
        records: list[Record] = []
        for number, uuid in enumerate(image.acls.ids, 1):
            entry = image.acls.entries[uuid]
            matched = False
            for place, matches in enumerate(filters):
                if isinstance(matches, LogbergError) or not matches(entry):
                    continue
                matched = True
                counts[place] += 1
                if room:
                    room -= 1
                    shown[place].append(describe_acl(entry))
            if matched:
                records.append(RemoveAccessControlEntryRecord(uuid))
            if number % _STEP == 0:
                yield
        results = tuple(
            DeletedAcls(error=error_reply(each))
            if isinstance(each, LogbergError)
            else DeletedAcls(count=count, acls=tuple(some))
            for each, count, some in zip(filters, counts, shown, strict=True)
        )
        return ControllerResult(records, DeleteAclsReply(results, dry_run=request.dry_run))

    def _new_id(self, image: MetadataImage) -> bytes:
        while (uuid := uuid4_from(self._random.getrandbits(122))) in image.acls.entries:
            pass
        return uuid


def checked_content(field: str, entry: AclEntry) -> AclContent:
    """Return what an entry says, in codes. Raises LogbergError INVALID_REQUEST, with the field."""
    kind = code_of(AclResourceType, f"{field}.resourceType", entry.resource_type)
    pattern = code_of(AclPatternType, f"{field}.patternType", entry.pattern_type)
    operation = code_of(AclOperation, f"{field}.operation", entry.operation)
    permission = code_of(AclPermissionType, f"{field}.permissionType", entry.permission_type)
    if kind is AclResourceType.ANY:
        raise _invalid(f"{field}.resourceType", "ANY is for filters; name one type")
    if pattern not in (AclPatternType.LITERAL, AclPatternType.PREFIXED):
        raise _invalid(f"{field}.patternType", "an entry is LITERAL or PREFIXED")
    if operation is AclOperation.ANY:
        raise _invalid(f"{field}.operation", "ANY is for filters; name one operation, or ALL")
    if permission is AclPermissionType.ANY:
        raise _invalid(f"{field}.permissionType", "an entry is ALLOW or DENY")
    for name, text in (
        ("resourceName", entry.resource_name),
        ("principal", entry.principal),
        ("host", entry.host),
    ):
        _check_text(f"{field}.{name}", text)
    if is_range(entry.host) and range_of(entry.host) is None:
        raise _invalid(
            f"{field}.host",
            f"{entry.host[:50]!r} is no range of addresses; give one such as 10.0.0.0/8 or "
            "2001:db8::/32",
        )
    if kind is AclResourceType.CLUSTER and not is_cluster_name(entry.resource_name):
        raise _invalid(
            f"{field}.resourceName",
            f"the CLUSTER resource has one of the names {', '.join(CLUSTER_NAMES)}; behind the "
            "colon comes what it is about, such as key:/app",
        )
    if not all(entry.principal.partition(":")):
        raise _invalid(f"{field}.principal", "give a type and a name, such as User:alice")
    return kind, pattern, entry.resource_name, entry.principal, entry.host, operation, permission


def _check_level(image: MetadataImage, content: AclContent) -> None:
    """Raise LogbergError UNSUPPORTED_VERSION for a range below the level that brings ranges."""
    record = AccessControlEntryRecord(bytes(16), *_in_record_order(content))
    level = image.features.levels.get(METADATA_VERSION, 0)
    why = missing_level(record, [need for need in record.NEEDS if need.level > level])
    if why:
        raise LogbergError(ErrorCode.UNSUPPORTED_VERSION, why)


def checked_filter(field: str, wanted: AclFilter) -> Matches:
    """Return whether an entry matches, as a function. Raises LogbergError INVALID_REQUEST."""
    prefix = f"{field}." if field else ""
    kind = code_of(AclResourceType, f"{prefix}resourceType", wanted.resource_type)
    pattern = code_of(AclPatternType, f"{prefix}patternType", wanted.pattern_type)
    operation = code_of(AclOperation, f"{prefix}operation", wanted.operation)
    permission = code_of(AclPermissionType, f"{prefix}permissionType", wanted.permission_type)

    def matches(entry: AccessControlEntryRecord) -> bool:
        return (
            kind in (AclResourceType.ANY, entry.resource_type)
            and operation in (AclOperation.ANY, entry.operation)
            and permission in (AclPermissionType.ANY, entry.permission_type)
            and wanted.principal in (None, entry.principal)
            and wanted.host in (None, entry.host)
            and _matches_name(pattern, wanted.resource_name, entry)
        )

    return matches


def _matches_name(
    pattern: AclPatternType, name: str | None, entry: AccessControlEntryRecord
) -> bool:
    """Return whether a filter's name and pattern match an entry's (KIP-290)."""
    literal = entry.pattern_type == AclPatternType.LITERAL
    if pattern is not AclPatternType.MATCH:
        return pattern in (AclPatternType.ANY, entry.pattern_type) and name in (
            None,
            entry.resource_name,
        )
    if name is None:
        return True
    if literal:
        return entry.resource_name in (name, "*")
    return name.startswith(entry.resource_name)


def code_of(kind: type[Code], field: str, text: str) -> Code:
    """Return the code of one of Kafka's names. Raises LogbergError INVALID_REQUEST."""
    try:
        code = kind[text]
    except KeyError:
        code = kind["UNKNOWN"]
    if code.name == "UNKNOWN":
        names = ", ".join(each.name for each in kind if each.name != "UNKNOWN")
        raise _invalid(field, f"{text[:50]!r} is unknown; give {names}")
    return code


def describe_acl(entry: AccessControlEntryRecord) -> AclDescription:
    """Describe an entry, with names for its codes."""
    return AclDescription(
        id=uuid_text(entry.id),
        resource_type=_name(AclResourceType, entry.resource_type),
        resource_name=entry.resource_name,
        pattern_type=_name(AclPatternType, entry.pattern_type),
        principal=entry.principal,
        host=entry.host,
        operation=_name(AclOperation, entry.operation),
        permission_type=_name(AclPermissionType, entry.permission_type),
    )


def _name(kind: type[IntEnum], code: int) -> str:
    """Return a code's name; a log may hold a code that this build doesn't know."""
    try:
        return kind(code).name
    except ValueError:
        return str(code)


def _in_record_order(content: AclContent) -> tuple[int, str, int, str, str, int, int]:
    kind, pattern, name, principal, host, operation, permission = content
    return kind, name, pattern, principal, host, operation, permission


def _check_text(field: str, text: str) -> None:
    if not text:
        raise _invalid(field, "it is empty")
    if len(text) > TEXT_MAX:
        raise _invalid(field, f"it has more than {TEXT_MAX} characters")
    check_plain(field, text)


def _invalid(field: str, why: str) -> LogbergError:
    return LogbergError(ErrorCode.INVALID_REQUEST, f"{field}: {why}", {"field": field})
