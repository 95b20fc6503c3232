"""Notes brokers that fetch the log and never register, and says what is wrong with them.

A Kafka broker registers as soon as it knows where the leader listens. It looks for the leader's
address under the name in its controller.listener.names. If the voters' record has another name, the
broker fetches for ever and does nothing else, and nothing in its own log names the cause.

Rule: each broker is told of once while it goes on, in this controller's log.
"""

from collections.abc import Container
from typing import Final

from structlog.typing import FilteringBoundLogger

AFTER_MS: Final = 15_000
"""So long a broker may fetch without being registered."""
_SILENT_MS: Final = 10_000
"""After such a pause it begins anew."""
_MOST: Final = 1_000


class UnregisteredBrokers:
    """The brokers that fetch from this controller and are not registered."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._since: dict[int, tuple[int, int]] = {}
        """By id: when it first fetched, and when last, in ms."""
        self._told: set[int] = set()

    def fetched(
        self, replica_id: int, listener: str, registered: Container[int], now_ms: int
    ) -> None:
        """A replica with an id fetched through the listener of this name."""
        if replica_id in registered:
            self._since.pop(replica_id, None)
            self._told.discard(replica_id)
            return
        first, last = self._since.pop(replica_id, (now_ms, now_ms))
        if now_ms - last > _SILENT_MS:
            first = now_ms
        if len(self._since) >= _MOST:
            self._since.pop(next(iter(self._since)))
        self._since[replica_id] = (first, now_ms)
        if now_ms - first >= AFTER_MS and replica_id not in self._told:
            self._tell(replica_id, listener)

    def _tell(self, replica_id: int, listener: str) -> None:
        if len(self._told) >= _MOST:
            self._told.clear()
        self._told.add(replica_id)
        self._log.warning(
            "kafka_broker_unregistered",
            broker_id=replica_id,
            reason=(
                f"it fetches the log for {AFTER_MS // 1000} s and has not registered. Unless its "
                "registration was refused (kafka_broker_refused), its controller.listener.names "
                f"doesn't name {listener}, as the controllers' listener is called"
            ),
        )
