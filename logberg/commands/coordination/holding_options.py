"""The options and arguments of commands that hold something while a command runs."""

import math

import click

from logberg.cli.option_group import option_group

holding_options = option_group(
    click.argument("command_line", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]"),
    click.option(
        "--ttl",
        type=click.FloatRange(min=1),
        default=15.0,
        show_default=True,
        help="Seconds after which the controllers give up a session that they don't hear from.",
    ),
    click.option(
        "--grace",
        type=click.FloatRange(min=0),
        default=3.0,
        show_default=True,
        help="Seconds from SIGTERM to SIGKILL for a command whose grant is lost.",
    ),
    click.option(
        "--wait",
        type=click.FloatRange(min=0),
        default=math.inf,
        help="Seconds to wait at most; 0 takes only what is free. Default: wait without end.",
    ),
)


def waiting_time(wait_s: float) -> float | None:
    """Return the time as coordination takes it: None waits without end."""
    return None if math.isinf(wait_s) else wait_s
