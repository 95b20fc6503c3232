"""What all connections of one listener share: handlers, limits, counters, and who may log in."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kafka_listener.asking.request import Handler, KafkaRequest
from kafka_listener.serving.api_versions import FeatureVersions, served_versions
from kafka_listener.serving.logins import Logins
from kafka_listener.serving.shared_pass import SharedPass
from runtime.clock import Clock
from runtime.sockets.byte_budget import ByteBudget
from runtime.sockets.refusals import KAFKA, KAFKA_DEFECT, Refusals

REFUSED: Final = KAFKA
"""The event of a connection that is closed because of what its client sent."""
FAILED: Final = KAFKA_DEFECT
"""The event of a defect: a handler raised an exception, or its answer can't be written."""


class KafkaLimits(NamedTuple):
    """Sizes in bytes, times in seconds."""

    request_bytes: int = 8 * 1024 * 1024
    """The largest request. A controller's requests are small; Kafka's brokers take 100 MiB, because
    they also take messages."""
    stranger_bytes: int = 64 * 1024
    """The largest request of a client that is not authenticated yet."""
    ahead_bytes: int = 64 * 1024
    """Bytes that are read behind the request under way."""
    decoded_bytes: int = 64 * 1024 * 1024
    """What the requests that are decoded and not answered yet may take together, about."""
    login_s: float = 10.0
    """Within this time a client must be authenticated, where that is needed."""
    request_s: float = 10.0
    """Within this time a request must have arrived as a whole, from its first byte on."""
    reply_s: float = 120.0
    """If the handler has not answered by then, the client gets REQUEST_TIMED_OUT."""
    unread_s: float = 60.0
    """A client that does not read its answers is cut off after this time."""
    idle_s: float = 600.0
    """A connection without a request ends after this time, as Kafka's connections.max.idle.ms."""


class KafkaService:
    """One listener's parts, for its sessions."""

    def __init__(
        self,
        handlers: Mapping[int, Handler],
        features: Callable[[], FeatureVersions],
        logins: Logins,
        *,
        listener: str,
        clock: Clock,
        refusals: Refusals,
        budget: ByteBudget,
        limits: KafkaLimits | None = None,
        on_defect: Callable[[KafkaRequest, Exception], None] = lambda _request, _error: None,
    ) -> None:
        """`features` is asked at each ApiVersions. `listener` is its name, such as CONTROLLER.

        `on_defect` hears of a handler's exception, for tests.
        """
        self.handlers = handlers
        self.features = features
        self.logins = logins
        self.listener = listener
        self.clock = clock
        self.refusals = refusals
        self.budget = budget
        self.on_defect = on_defect
        self.limits = limits if limits is not None else KafkaLimits()
        self.decoded = ByteBudget(self.limits.decoded_bytes)
        self.passes = SharedPass(clock)
        self.served = served_versions(handlers)
        self.requests: Counter[str] = Counter()
        """For metrics: requests by name."""
        self.failures: Counter[str] = Counter()
        """For metrics: requests that failed as a whole, by the name of the error."""
