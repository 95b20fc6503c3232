"""The managers of this room, made together."""

from collections.abc import Callable

from controller.config import ControllerConfig
from controller.managers.clients.access_tokens import AccessTokenManager
from controller.managers.clients.acls import AclManager
from controller.managers.clients.erasure import ErasureManager
from controller.managers.clients.joining import JoinManager
from controller.managers.clients.revocations import RevocationManager
from controller.managers.clients.scram import ScramManager
from controller.managers.clients.tokens import TokenLimits, TokenManager
from controller.managers.pseudonym_covering import Covering
from metadata.acl_rules import AclPolicy
from runtime.randomness import Random


class ClientManagers:
    """One manager for each kind of record that is decided with more than an image."""

    def __init__(
        self,
        config: ControllerConfig,
        random: Random,
        wall_ms: Callable[[], int],
        covering: Covering,
    ) -> None:
        """`random` draws uuids; `wall_ms` is the time at which tokens are made and end.

        `covering` says who gets pseudonyms.
        """
        self.acls = AclManager(random)
        self.scram = ScramManager(random, config.cluster_key)
        self.access_tokens = AccessTokenManager(wall_ms)
        self.joining = JoinManager(config.cluster_id, random, config.authority, wall_ms)
        self.revocations = RevocationManager(wall_ms)
        self.erasures = ErasureManager(config.cluster_key, wall_ms, covering.covers)
        self.tokens = TokenManager(
            random,
            config.cluster_key,
            TokenLimits(config.token_max_lifetime_ms, config.token_period_ms),
            AclPolicy(config.super_users, config.allow_if_no_acl),
            wall_ms,
        )
