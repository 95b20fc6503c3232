"""Structured logs: one event a line, on stderr.

Rule: an event has a stable name (snake_case, listed in docs/log-events.md) and fields; its name
never contains values. The format is JSON if stderr is a file or a pipe, and readable text on a
terminal. The level can be changed while the process runs. A field whose name suggests a secret is
never written. Warnings and errors that libraries log with Python's `logging` are written in the
same form, as the event `library_log`.
"""

import logging
import sys
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, WrappedLogger

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
SECRETS = frozenset(
    {"token", "password", "secret", "authorization", "private_key", "salted_password"}
)


class _Level:
    """The level of this process. structlog calls it for every event."""

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


def configure(level: str, *, stream: TextIO | None = None, **bound: Any) -> FilteringBoundLogger:
    """Set logging up for this process, and return its logger with `bound` fields.

    `stream` is stderr unless given. Raises KeyError for an unknown level.
    """
    set_level(level)
    out = sys.stderr if stream is None else stream
    structlog.configure(
        processors=[
            _LEVEL,
            _without_secrets,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *(_readable() if out.isatty() else _json()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(0),
        logger_factory=structlog.PrintLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    log = cast("FilteringBoundLogger", structlog.get_logger(**bound))
    logging.basicConfig(handlers=[_FromLibraries(log)], level=logging.WARNING, force=True)
    return log


class _FromLibraries(logging.Handler):
    """Logs what libraries log with Python's `logging`."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.log(
            min(record.levelno, logging.CRITICAL),
            "library_log",
            library=record.name,
            text=record.getMessage(),
            exc_info=record.exc_info,
        )


def _readable() -> list[Any]:
    return [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]


def _json() -> list[Any]:
    # A traceback as one string: locals in it would be slow to render and could hold secrets.
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]


def _without_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    for name in SECRETS.intersection(event):
        event[name] = "(not written)"
    return event
