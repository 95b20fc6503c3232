"""The table of administrators' requests, by Kafka's api key."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from kafka_listener.admin.acls import create_acls, delete_acls, describe_acls
from kafka_listener.admin.admin_call import ELEMENTS_MAX, AdminCall
from kafka_listener.admin.configs import alter_configs, incremental_alter_configs
from kafka_listener.admin.credentials import (
    alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from kafka_listener.admin.features import update_features
from kafka_listener.admin.partitions import (
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
)
from kafka_listener.admin.quotas import alter_client_quotas, describe_client_quotas
from kafka_listener.admin.tokens import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    renew_delegation_token,
)
from kafka_listener.admin.topics import create_partitions, create_topics, delete_topics
from kafka_listener.asking.asking import Asking
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, Handler, KafkaFailure, KafkaRequest, Steps

_AdminHandler = Callable[[AdminCall], Steps | None]
_LONG: Final = frozenset({45})
"""AlterPartitionReassignments may have as many elements as any request."""
_HANDLERS: Final[Mapping[int, _AdminHandler]] = MappingProxyType(
    {
        19: create_topics,
        20: delete_topics,
        29: describe_acls,
        30: create_acls,
        31: delete_acls,
        33: alter_configs,
        37: create_partitions,
        38: create_delegation_token,
        39: renew_delegation_token,
        40: expire_delegation_token,
        41: describe_delegation_token,
        43: elect_leaders,
        44: incremental_alter_configs,
        45: alter_partition_reassignments,
        46: list_partition_reassignments,
        48: describe_client_quotas,
        49: alter_client_quotas,
        50: describe_user_scram_credentials,
        51: alter_user_scram_credentials,
        57: update_features,
    }
)


def admin_handlers(asking: Asking) -> Mapping[int, Handler]:
    """Return the handler of each administrators' request."""

    def bound(handle: _AdminHandler) -> Handler:
        def handler(request: KafkaRequest, answer: Answer) -> None:
            if request.elements > ELEMENTS_MAX and request.api_key not in _LONG:
                raise KafkaFailure(
                    KafkaCode.INVALID_REQUEST,
                    f"the request has {request.elements} elements, and a request may have "
                    f"{ELEMENTS_MAX}; send several requests",
                )
            call = AdminCall(asking, request, answer)
            call.run_if_long(handle(call))

        return handler

    return {key: bound(handle) for key, handle in _HANDLERS.items()}
