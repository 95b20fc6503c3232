"""What stands in the way of running Apache Kafka on this machine."""


class KafkaError(Exception):
    """Kafka can't be fetched, started or stopped. The message says why, and what to do."""
