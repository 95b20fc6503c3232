"""The handlers of an agent's Kafka listener that answer from its image."""

from collections.abc import Mapping
from functools import partial

from kafka_listener.asking.request import Handler
from kafka_listener.clients.cluster_answers import DESCRIBE_CLUSTER, describe_brokers
from kafka_listener.clients.config_answers import DESCRIBE_CONFIGS, ConfigAnswers
from kafka_listener.clients.config_resources import LIST_CONFIG_RESOURCES, list_config_resources
from kafka_listener.clients.coordinators import FIND_COORDINATOR, refuse_coordinators
from kafka_listener.clients.image_source import ImageSource
from kafka_listener.clients.log_dirs import DESCRIBE_LOG_DIRS, describe_log_dirs
from kafka_listener.clients.metadata_answers import METADATA, MetadataAnswers
from kafka_listener.clients.sliced_answers import SlicedAnswers
from kafka_listener.clients.topic_partitions import DESCRIBE_TOPIC_PARTITIONS, TopicPartitionPages
from runtime.clock import Clock


def agent_handlers(source: ImageSource, clock: Clock) -> Mapping[int, Handler]:
    """Return the handlers by api key."""
    answers = SlicedAnswers(clock)
    return {
        METADATA: MetadataAnswers(source, answers).answer,
        FIND_COORDINATOR: refuse_coordinators,
        DESCRIBE_CONFIGS: ConfigAnswers(source, answers).answer,
        DESCRIBE_LOG_DIRS: partial(describe_log_dirs, source),
        DESCRIBE_CLUSTER: partial(describe_brokers, source),
        LIST_CONFIG_RESOURCES: partial(list_config_resources, source),
        DESCRIBE_TOPIC_PARTITIONS: TopicPartitionPages(source, answers).answer,
    }
