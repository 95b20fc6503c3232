"""What the product says in its log while it opens harmed files."""

from typing import Any

import structlog


class Events:
    """Names of events, in order."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.log: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
            None, processors=[self._note], wrapper_class=structlog.BoundLogger
        )

    def _note(self, _logger: object, _level: str, event: Any) -> Any:
        self.names.append(str(event["event"]))
        raise structlog.DropEvent
