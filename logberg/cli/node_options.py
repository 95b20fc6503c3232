"""The options of the commands that run a node in the foreground."""

from pathlib import Path
from typing import Final

import click

from logberg.cli.option_group import option_group

node_options: Final = option_group(
    click.option(
        "--config",
        "files",
        type=click.Path(path_type=Path),
        required=True,
        multiple=True,
        help="Configuration file: TOML, or Kafka's server.properties; or one of each.",
    ),
    click.option(
        "--override",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="A value for one of Kafka's keys, instead of that of the files.",
    ),
    click.option(
        "--insecure-network", is_flag=True, help="Allow a listener beyond loopback without TLS."
    ),
)
