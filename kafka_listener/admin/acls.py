"""CreateAcls, DeleteAcls and DescribeAcls, as our routes of access control entries."""

from collections import defaultdict
from enum import IntEnum
from typing import Any, Final

from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.asking.in_steps import each, for_each
from kafka_listener.asking.request import Fields, Steps
from metadata.messages import (
    AclDescription,
    AclEntry,
    AclFilter,
    CreateAclsReply,
    CreateAclsRequest,
    DeleteAclsReply,
    DeleteAclsRequest,
    DeletedAcls,
    ListAclsReply,
)
from metadata.records import AclOperation, AclPatternType, AclPermissionType, AclResourceType

_LITERAL: Final = int(AclPatternType.LITERAL)
_UNKNOWN: Final = "UNKNOWN"


def create_acls(call: AdminCall) -> Steps:
    """CreateAcls (30). An entry that exists is no error, as in Kafka."""
    creations = call.fields["Creations"]
    if not creations:
        call.answer({"Results": []})
        return
    message = CreateAclsRequest((yield from each(_entry, creations)))

    def then(reply: CreateAclsReply) -> None:
        call.answer({"Results": (call.result(acl.error) for acl in reply.acls)})

    call.change("POST", "/v1/acls", message, CreateAclsReply, then)


def delete_acls(call: AdminCall) -> Steps:
    """DeleteAcls (31): each filter's entries are removed."""
    filters = call.fields["Filters"]
    if not filters:
        call.answer({"FilterResults": []})
        return
    message = DeleteAclsRequest((yield from each(_filter, filters)))

    def result(deleted: DeletedAcls) -> dict[str, Any]:
        return {"MatchingAcls": map(_matching, deleted.acls), **call.result(deleted.error)}

    def then(reply: DeleteAclsReply) -> None:
        call.answer({"FilterResults": map(result, reply.filters)})

    call.change("DELETE", "/v1/acls", message, DeleteAclsReply, then)


def describe_acls(call: AdminCall) -> None:
    """DescribeAcls (29): the entries that match, by resource."""
    wanted = _filter(
        {
            "ResourceTypeFilter": call.fields["ResourceTypeFilter"],
            "ResourceNameFilter": call.fields["ResourceNameFilter"],
            "PatternTypeFilter": call.fields.get("PatternTypeFilter", _LITERAL),
            "PrincipalFilter": call.fields["PrincipalFilter"],
            "HostFilter": call.fields["HostFilter"],
            "Operation": call.fields["Operation"],
            "PermissionType": call.fields["PermissionType"],
        }
    )
    query = {
        "resourceType": wanted.resource_type,
        "patternType": wanted.pattern_type,
        "operation": wanted.operation,
        "permissionType": wanted.permission_type,
    }
    named = {
        "resourceName": wanted.resource_name,
        "principal": wanted.principal,
        "host": wanted.host,
    }
    query |= {key: value for key, value in named.items() if value is not None}

    def then(pages: list[ListAclsReply]) -> Steps:
        by_resource: dict[tuple[str, str, str], list[AclDescription]] = defaultdict(list)

        def note(entry: AclDescription) -> None:
            resource = (entry.resource_type, entry.resource_name, entry.pattern_type)
            by_resource[resource].append(entry)

        yield from for_each(note, (entry for page in pages for entry in page.acls))
        resources = (
            {
                "ResourceType": AclResourceType[kind],
                "ResourceName": name,
                "PatternType": AclPatternType[pattern],
                "Acls": map(_who, entries),
            }
            for (kind, name, pattern), entries in by_resource.items()
        )
        call.answer({"Resources": resources, **call.result(None)})

    call.read_all("/v1/acls", ListAclsReply, then, query)


def _entry(creation: Fields) -> AclEntry:
    return AclEntry(
        resource_type=_word(AclResourceType, creation["ResourceType"]),
        resource_name=creation["ResourceName"],
        principal=creation["Principal"],
        operation=_word(AclOperation, creation["Operation"]),
        pattern_type=_word(AclPatternType, creation.get("ResourcePatternType", _LITERAL)),
        host=creation["Host"],
        permission_type=_word(AclPermissionType, creation["PermissionType"]),
    )


def _filter(wanted: Fields) -> AclFilter:
    return AclFilter(
        resource_type=_word(AclResourceType, wanted["ResourceTypeFilter"]),
        resource_name=wanted["ResourceNameFilter"],
        pattern_type=_word(AclPatternType, wanted.get("PatternTypeFilter", _LITERAL)),
        principal=wanted["PrincipalFilter"],
        host=wanted["HostFilter"],
        operation=_word(AclOperation, wanted["Operation"]),
        permission_type=_word(AclPermissionType, wanted["PermissionType"]),
    )


def _word(names: type[IntEnum], number: int) -> str:
    """Return the name of a number. The route refuses UNKNOWN, with a sentence."""
    try:
        return names(number).name
    except ValueError:
        return _UNKNOWN


def _who(entry: AclDescription) -> dict[str, Any]:
    return {
        "Principal": entry.principal,
        "Host": entry.host,
        "Operation": AclOperation[entry.operation],
        "PermissionType": AclPermissionType[entry.permission_type],
    }


def _matching(entry: AclDescription) -> dict[str, Any]:
    return {
        "ResourceType": AclResourceType[entry.resource_type],
        "ResourceName": entry.resource_name,
        "PatternType": AclPatternType[entry.pattern_type],
        **_who(entry),
    }
