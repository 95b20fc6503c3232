"""Which entries of a list its asker may see (ADR 0092).

Rule: a list has what the asker may describe, and says nothing about the rest: not even in the token
of its next page. Whoever has the right on everything sees everything, and costs no look-up. A
`ListFilter` asks the entries that were the newest when the answer began.
"""

from typing import NamedTuple

from controller.access.rights import Right
from metadata.acl_rules import AclPolicy, Action, authorize
from metadata.image.acls import AclsImage
from metadata.records import AclOperation, AclResourceType


class Listing(NamedTuple):
    """The rights that a list asks for."""

    operation: AclOperation
    """On each name."""
    of_all: Right
    """With this right the asker sees everything."""


class ListFilter:
    """Says which names of a list one asker may see."""

    def __init__(
        self, acls: AclsImage, policy: AclPolicy, principal: str, host: str, operation: AclOperation
    ) -> None:
        self._acls = acls
        self._policy = policy
        self._principal = principal
        self._host = host
        self._operation = operation

    def shows(self, resource_type: AclResourceType, name: str) -> bool:
        """Return whether the asker may see a topic or a group."""
        action = Action(self._principal, self._host, self._operation, resource_type, name)
        return authorize(self._acls, action, self._policy).allowed
