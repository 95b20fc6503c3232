"""Which function answers which route about clients."""

from collections.abc import Mapping
from typing import Final

from controller.http.clients import acls
from controller.http.clients.asked import MakeChange, Read

CHANGES: Final[Mapping[str, MakeChange]] = {
    "create_acls": acls.create_acls,
    "delete_acls": acls.delete_acls,
}
READS: Final[Mapping[str, Read]] = {
    "list_acls": acls.list_acls,
    "check_acl": acls.check_acl,
}
