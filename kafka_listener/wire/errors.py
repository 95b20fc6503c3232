"""What reading or writing Kafka's bytes raises."""


class WireError(Exception):
    """The bytes are no such message, or the fields make none. The message is one sentence."""
