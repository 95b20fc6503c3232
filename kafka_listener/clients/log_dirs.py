"""Answers DescribeLogDirs (api key 35, versions 1 to 5): an agent has no log directories to show.

`kafka-reassign-partitions` asks every broker for the directories of its replicas, and prints `any`
for those that no broker names. So the answer is an empty list, and no error.
"""

from typing import Final

from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Answer, KafkaFailure, KafkaRequest
from kafka_listener.clients.image_source import ImageSource

DESCRIBE_LOG_DIRS: Final = 35


def describe_log_dirs(source: ImageSource, _request: KafkaRequest, answer: Answer) -> None:
    """Answer one request. Raises KafkaFailure."""
    why = source.refusal()
    if why:
        raise KafkaFailure(KafkaCode.BROKER_NOT_AVAILABLE, why)
    answer({"Results": []})
