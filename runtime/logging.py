"""Structured logs: one event a line, on stderr.

Rule: an event has a stable name (snake_case, listed in docs/log-events.md) and fields; no event's
text is put together from values. JSON where stderr is a file or a pipe, readable on a terminal.
The level can be changed while the process runs.
"""

import sys
from typing import Any, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


class _Level:
    """The level of this process; structlog asks at every event."""

    def __init__(self) -> None:
        self.value = LEVELS["info"]

    def __call__(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        name = "error" if method == "exception" else method
        if LEVELS.get(name, LEVELS["error"]) < self.value:
            raise structlog.DropEvent
        return event


_LEVEL = _Level()


def set_level(level: str) -> None:
    """Change the level while the process runs. Raises KeyError for an unknown one."""
    _LEVEL.value = LEVELS[level]


def configure(level: str, **bound: Any) -> FilteringBoundLogger:
    """Set logging up for this process, and return its logger with `bound` fields."""
    set_level(level)
    terminal = sys.stderr.isatty()
    last: list[Any] = (
        [structlog.dev.ConsoleRenderer()]
        if terminal
        else [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[
            _LEVEL,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    return cast("FilteringBoundLogger", structlog.get_logger(**bound))
