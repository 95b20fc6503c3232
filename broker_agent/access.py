"""Which topics an agent's own HTTP interface shows to a caller (ADR 0092).

Rule: the entries of the agent's image decide, by the controllers' own code
(`metadata.acl_rules`). An image may be a moment old, so a grant or a revocation counts once it has
arrived. An agent whose lease is over answers nothing, so nobody sees more by entries of long ago.
"""

from collections.abc import Callable
from typing import Final

from broker_agent.config import AgentConfig
from metadata.acl_names import KAFKA_CLUSTER
from metadata.acl_rules import AclPolicy, Action, Enforcement, authorize
from metadata.image import MetadataImage
from metadata.records import AclOperation, AclResourceType

_LOCAL_HOST: Final = "127.0.0.1"
"""The host of a caller on a unix socket."""
Shows = Callable[[str], bool]
"""Whether the caller may see a topic of this name."""


class TopicAccess:
    """Judges callers of one agent."""

    def __init__(self, config: AgentConfig) -> None:
        self.enforced = config.authorization == Enforcement.ON
        self._policy = AclPolicy(config.super_users, config.allow_if_no_acl)

    def shown_to(self, image: MetadataImage, principal: str, address: str) -> Shows | None:
        """Return what says which topics the caller may see; None: all of them."""
        if not self.enforced or principal in self._policy.super_users:
            return None
        host = address or _LOCAL_HOST

        def may_describe(kind: AclResourceType, name: str) -> bool:
            action = Action(principal, host, AclOperation.DESCRIBE, kind, name)
            return authorize(image.acls, action, self._policy).allowed

        if may_describe(AclResourceType.CLUSTER, KAFKA_CLUSTER):
            return None
        return lambda name: may_describe(AclResourceType.TOPIC, name)
