"""Says in this controller's log why a Kafka broker can't work.

Rule: Kafka's answers have only a number, and a broker asks again and again. So the sentence goes to
the log, once for each broker and reason.
"""

from typing import Final

from structlog.typing import FilteringBoundLogger

_TOLD_MAX: Final = 1_000


def id_of_a_controller(broker_id: int) -> str:
    """Return the reason for a broker whose node id a controller has."""
    return (
        f"node id {broker_id} belongs to a controller, and in Kafka brokers and controllers share "
        "one space of ids; give the broker another node.id"
    )


class RefusedBrokers:
    """What was said of which broker."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._told: dict[int, str] = {}
        """By broker: the last reason."""

    def tell(self, broker_id: int, reason: str) -> None:
        """Log a reason, unless it is the one that was logged last."""
        if self._told.get(broker_id) == reason:
            return
        if len(self._told) >= _TOLD_MAX:
            self._told.clear()
        self._told[broker_id] = reason
        self._log.warning("kafka_broker_refused", broker_id=broker_id, reason=reason)

    def works(self, broker_id: int) -> None:
        """Forget what was said of a broker: it is registered."""
        self._told.pop(broker_id, None)
