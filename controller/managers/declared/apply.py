"""Decides about an apply: compares everything, and returns one all-or-nothing decision (ADR 0033).

The comparison walks over what is declared, and with `prune` over everything of the pruned kinds. It
yields on the way. A large plan becomes one long transaction, as every large decision does.
"""

from collections.abc import Generator

import msgspec

from controller.managers.clients.managers import ClientManagers
from controller.managers.configs import ConfigManager
from controller.managers.declared.clients import compare_acls, compare_quotas, compare_users
from controller.managers.declared.configs import ConfigComparison, shown_configs
from controller.managers.declared.plan import ApplyPlan
from controller.managers.declared.topics import (
    TopicComparison,
    TopicManagers,
    partitions_deleted,
    partitions_touched,
)
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import ApplyRequest, DeclaredKind
from metadata.messages.wire import canonical


class ApplyManager:
    """`apply` reads an image and returns records."""

    def __init__(
        self, topics: TopicManagers, configs: ConfigManager, clients: ClientManagers
    ) -> None:
        """The managers of the single routes decide."""
        self._topics = topics
        self._configs = configs
        self._clients = clients

    def apply(
        self, image: MetadataImage, request: ApplyRequest
    ) -> Generator[None, None, ControllerResult]:
        """Make the state as declared: completely, or not at all.

        Raises LogbergError PLAN_CHANGED, or INVALID_REQUEST for options that contradict each other.
        """
        pruned = set(request.prune)
        if request.delete_topics and DeclaredKind.TOPICS not in pruned:
            raise LogbergError(
                ErrorCode.INVALID_REQUEST,
                "deleteTopics: prune doesn't name topics, so none would be deleted",
                {"field": "deleteTopics"},
            )
        plan = ApplyPlan()
        configs = ConfigComparison(plan, image, self._configs)
        topics = TopicComparison(plan, image, configs)
        yield from topics.compare_all(
            request.topics, prune=DeclaredKind.TOPICS in pruned, delete=request.delete_topics
        )
        yield from configs.compare_all(request.configs, prune=DeclaredKind.CONFIGS in pruned)
        yield from topics.decide(self._topics)
        yield from configs.decide()
        yield from compare_quotas(plan, image, request.quotas, prune=DeclaredKind.QUOTAS in pruned)
        yield from compare_acls(
            plan, image, self._clients.acls, request.acls, prune=DeclaredKind.ACLS in pruned
        )
        yield from compare_users(
            plan,
            image,
            self._clients.scram,
            request.users,
            prune=DeclaredKind.USERS in pruned,
            dry_run=request.dry_run,
        )
        return (yield from plan.result(dry_run=request.dry_run, expected=request.expected_plan))

    def touches(self, image: MetadataImage, request: ApplyRequest) -> Generator[None, None, int]:
        """Count the partitions that an apply creates or deletes, for the quota."""
        total = yield from partitions_touched(image, request.topics, self._topics)
        if request.delete_topics:
            total += yield from partitions_deleted(image, request.topics)
        return total

    def meaning(self, request: ApplyRequest) -> bytes:
        """Return what stands for a request where the log keeps its digest: never a secret.

        Without a key the secrets are left out; then no credential is set either.
        """
        scram = self._clients.scram
        if scram.has_key:
            return scram.secret_meaning(canonical(request))
        users = tuple(
            msgspec.structs.replace(each, salt=b"", salted_password=b"") for each in request.users
        )
        configs = tuple(
            msgspec.structs.replace(each, configs=shown_configs(each)) for each in request.configs
        )
        return canonical(msgspec.structs.replace(request, users=users, configs=configs))
