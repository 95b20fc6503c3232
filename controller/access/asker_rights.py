"""What one asker may do, for answers that show only a part (ADR 0092).

Rule: all questions of one answer are asked of the entries of one image. A super user, and everybody
where rights are not enforced, has no `AskerRights`: None stands for all rights, so such answers
cost no look-up.
"""

from controller.access.guard import AccessGuard, Asker
from controller.access.rights import Right, on_cluster
from metadata.acl_rules import Enforcement
from metadata.image.acls import AclsImage
from metadata.records import AclOperation, AclResourceType


class AskerRights:
    """The rights of one asker by the entries of one image."""

    def __init__(self, guard: AccessGuard, acls: AclsImage, asker: Asker) -> None:
        self._guard = guard
        self._acls = acls
        self._asker = asker

    @property
    def key(self) -> tuple[str, str]:
        """Equal keys have equal rights in one image."""
        return self._asker.principal, self._asker.host

    def may(self, operation: AclOperation, resource_type: AclResourceType, name: str) -> bool:
        """Return whether the asker may do this."""
        right = Right(operation, resource_type, name)
        return self._guard.verdict(self._acls, self._asker, right).allowed

    def may_on_cluster(self, operation: AclOperation) -> bool:
        """Return whether the asker may do this on the cluster as a whole."""
        return self._guard.verdict(self._acls, self._asker, on_cluster(operation)).allowed


def rights_of(guard: AccessGuard, acls: AclsImage, asker: Asker) -> AskerRights | None:
    """Return an asker's rights; None: all of them."""
    if guard.enforcement is not Enforcement.ON or guard.is_super(asker):
        return None
    return AskerRights(guard, acls, asker)
