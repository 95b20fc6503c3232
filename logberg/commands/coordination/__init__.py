"""`logberg coordination`: what services coordinate by, for administrators and scripts.

Rule: an administrator's command asks as `LogbergClient`, with a reason and a request id. What runs
under a lock or a leadership (`lock`, `elect`) is a client of coordination, with a session.
"""

import click

from logberg.cli.lazy_group import LazyGroup

_HELP_LINES = {
    "sessions": "List and describe sessions; end somebody's session.",
    "groups": "List groups, and describe who is a member.",
    "elections": "List elections, describe who leads and who waits; end a leadership.",
    "locks": "List locks, describe who holds one and who waits; break one.",
    "keys": "Get, put, delete, list and watch keys.",
    "lock": "Run a command while this process holds a lock.",
    "elect": "Run a command while this process leads an election.",
    "limits": "Show what coordination allows, and how much of it is used.",
}


@click.group(
    "coordination", cls=LazyGroup, package="logberg.commands.coordination", help_lines=_HELP_LINES
)
def command() -> None:
    """Show and change what services coordinate by: sessions, groups, elections, locks and keys.

    It is there once logberg.version is 4: `logberg features upgrade logberg.version=4`.
    """
