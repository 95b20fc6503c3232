"""The measurements' own output, without the log of each session's state."""

import logging

import structlog


def log_only_warnings() -> None:
    """Log warnings and errors only."""
    level = structlog.make_filtering_bound_logger(logging.WARNING)
    structlog.configure(wrapper_class=level)
