"""Plug-ins that refuse new topics, or changes of configs, that a site doesn't allow (KIP-108, 133).

A plug-in is an object with a method `validate`. It comes in by the constructor of `Controller`; the
process of a controller loads it by the setting `create_topic_policy` or `alter_config_policy`.

Rule: the active controller calls it while it decides, on the event loop. It must answer within a
millisecond, and from its arguments alone. Replay never calls it: what a log holds was allowed when
it was written.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from metadata.errors import ErrorCode, LogbergError

T = TypeVar("T")


class PolicyViolationError(Exception):
    """Raised by a policy to refuse. Its text goes to the caller, with POLICY_VIOLATION."""


class ProposedTopic(NamedTuple):
    """A topic that is about to be created."""

    name: str
    num_partitions: int
    replication_factor: int
    assignments: Mapping[int, tuple[int, ...]] | None
    """By partition: the brokers that the caller chose. None: the controller places the replicas."""
    configs: Mapping[str, str]


class ProposedConfigs(NamedTuple):
    """Configs that are about to change."""

    resource_type: str
    """topic, broker, group or client-metrics."""
    resource_name: str
    """Empty with broker: the default of all brokers."""
    configs: Mapping[str, str | None]
    """The keys that change, with their new values; None: the key is deleted."""


class CreateTopicPolicy(Protocol):
    """Judges each topic that somebody wants to create."""

    def validate(self, topic: ProposedTopic) -> None:
        """Raise PolicyViolationError to refuse it."""
        ...


class AlterConfigPolicy(Protocol):
    """Judges each change of a resource's configs."""

    def validate(self, configs: ProposedConfigs) -> None:
        """Raise PolicyViolationError to refuse it."""
        ...


class Policies(NamedTuple):
    """The policies of a controller; None: everything is allowed."""

    create_topic: CreateTopicPolicy | None = None
    alter_config: AlterConfigPolicy | None = None


NO_POLICIES = Policies()


def judge(policy: Callable[[T], None], proposed: T, what: str) -> None:
    """Ask a policy. `what` names the thing that is judged, for the caller.

    Raises LogbergError POLICY_VIOLATION, or UNKNOWN_SERVER_ERROR if the policy fails in any other
    way: then the change isn't made.
    """
    try:
        policy(proposed)
    except PolicyViolationError as refusal:
        why = str(refusal) or "the policy gives no reason"
        raise LogbergError(ErrorCode.POLICY_VIOLATION, f"{what}: {why}") from None
    except Exception as defect:
        raise LogbergError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"{what}: the policy failed with {type(defect).__name__}: {defect}; ask whoever runs "
            "the controllers to mend it",
        ) from defect
