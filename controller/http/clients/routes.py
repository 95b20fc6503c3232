"""The routes about clients, as a part of the table in `controller.http.routes`."""

from typing import Final

from controller.http.route import PAGE, READS, Parameter, Route
from metadata.messages import (
    CheckAclReply,
    CreateAclsReply,
    CreateAclsRequest,
    DeleteAclsReply,
    DeleteAclsRequest,
    ListAclsReply,
)

ACL_FILTER: Final = (
    Parameter("resourceType", "string", "only this type, such as TOPIC (default: ANY)"),
    Parameter("resourceName", "string", "only this name"),
    Parameter(
        "patternType",
        "string",
        "LITERAL, PREFIXED, ANY (default), or MATCH: patterns that match resourceName",
    ),
    Parameter("principal", "string", "only this principal, such as User:alice"),
    Parameter("host", "string", "only this host"),
    Parameter("operation", "string", "only this operation, such as READ (default: ANY)"),
    Parameter("permissionType", "string", "ALLOW, DENY or ANY (default)"),
)

CLIENT_ROUTES: Final = (
    Route(
        "POST",
        "/v1/acls",
        "create_acls",
        "Add access control entries; those that are valid are one change",
        CreateAclsReply,
        CreateAclsRequest,
        changes=True,
    ),
    Route(
        "DELETE",
        "/v1/acls",
        "delete_acls",
        "Remove the access control entries that match a filter",
        DeleteAclsReply,
        DeleteAclsRequest,
        changes=True,
    ),
    Route(
        "GET",
        "/v1/acls",
        "list_acls",
        "Access control entries that match",
        ListAclsReply,
        None,
        (*READS, *ACL_FILTER, *PAGE),
    ),
    Route(
        "GET",
        "/v1/acls/check",
        "check_acl",
        "Whether a principal may do something, and which entry decides",
        CheckAclReply,
        None,
        (
            *READS,
            Parameter("principal", "string", "who; such as User:alice"),
            Parameter("host", "string", "the address that the principal calls from (default *)"),
            Parameter("operation", "string", "such as READ"),
            Parameter("resourceType", "string", "such as TOPIC"),
            Parameter("resourceName", "string", "the resource's name"),
        ),
    ),
)
