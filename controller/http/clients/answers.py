"""Which function answers which route about clients."""

from collections.abc import Mapping
from typing import Final

from controller.http.clients import (
    acls,
    controllers,
    credentials,
    erasures,
    producer_ids,
    pseudonyms,
    quotas,
    tokens,
    users,
)
from controller.http.clients.asked import MakeChange, Read, ReadInSteps

CHANGES: Final[Mapping[str, MakeChange]] = {
    "create_acls": acls.create_acls,
    "delete_acls": acls.delete_acls,
    "alter_quotas": quotas.alter,
    "alter_scram": users.alter_scram,
    "create_token": tokens.create_token,
    "renew_token": tokens.renew_token,
    "expire_token": tokens.expire_token,
    "create_access_token": credentials.create_access_token,
    "rotate_access_token": credentials.rotate_access_token,
    "revoke_access_token": credentials.revoke_access_token,
    "create_join_token": credentials.create_join_token,
    "revoke_join_token": credentials.revoke_join_token,
    "join": credentials.join,
    "revoke_certificates": credentials.revoke_certificates,
    "reinstate_certificates": credentials.reinstate_certificates,
    "erase_subject": erasures.erase_subject,
    "allocate_producer_ids": producer_ids.allocate_producer_ids,
    "unregister_controller": controllers.unregister,
    "change_voters": controllers.change_voters,
}
READS: Final[Mapping[str, Read]] = {
    "list_acls": acls.list_acls,
    "check_acl": acls.check_acl,
    "list_quotas": quotas.list_quotas,
    "resolve_quotas": quotas.resolve_quotas,
    "list_users": users.list_users,
    "describe_user": users.describe_user,
    "list_join_tokens": credentials.list_join_tokens,
    "list_revocations": credentials.list_revocations,
}
READS_IN_STEPS: Final[Mapping[str, ReadInSteps]] = {
    "list_tokens": tokens.list_tokens,
    "list_access_tokens": credentials.list_access_tokens,
    "list_pseudonyms": pseudonyms.list_pseudonyms,
}
