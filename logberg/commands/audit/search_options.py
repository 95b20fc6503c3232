"""Options that several commands have which read a log: its span, the caller, the thing."""

from typing import Final

import click

from logberg.cli.option_group import option_group

moment_options: Final = option_group(
    click.option(
        "--from", "from_", metavar="MOMENT", help="Begin here: an offset, a time, or -2h, -7d."
    ),
    click.option("--to", metavar="MOMENT", help="Stop before this moment."),
)
who_and_what_options: Final = option_group(
    click.option(
        "--principal",
        help="Who made the change, or for whom it was made: User:alice, alice, 'Broker:*'.",
    ),
    click.option("--operation", help="The operation that made the change: CreateTopics, 'Alter*'."),
    click.option(
        "--resource",
        multiple=True,
        help="What was changed: topic:orders, 'partition:orders-*', broker:3. Repeatable.",
    ),
)
show_secrets_option: Final = click.option(
    "--show-secrets", is_flag=True, help="Show SCRAM keys and passwords as they are."
)
