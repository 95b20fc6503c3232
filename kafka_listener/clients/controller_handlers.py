"""The handlers of a controller's Kafka listener that describe the cluster from its image.

Kafka's controllers answer these two for tools that name controllers (`--bootstrap-controller`).
"""

from collections.abc import Mapping
from functools import partial

from kafka_listener.asking.request import Handler
from kafka_listener.clients.cluster_answers import DESCRIBE_CLUSTER, describe_controllers
from kafka_listener.clients.config_answers import DESCRIBE_CONFIGS, ConfigAnswers
from kafka_listener.clients.image_source import ControllerSource
from kafka_listener.clients.sliced_answers import SlicedAnswers
from runtime.clock import Clock


def controller_view_handlers(source: ControllerSource, clock: Clock) -> Mapping[int, Handler]:
    """Return the handlers by api key."""
    return {
        DESCRIBE_CLUSTER: partial(describe_controllers, source),
        DESCRIBE_CONFIGS: ConfigAnswers(source, SlicedAnswers(clock)).answer,
    }
