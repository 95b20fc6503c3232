"""`logberg broker`."""

import sys
from pathlib import Path

import click

from logberg.cli.expected import expected_failures
from logberg.processes.broker_process import run_broker_process
from logberg.processes.node_settings import NodeOptions, load_broker


@click.command("broker")
@click.option(
    "--config",
    "files",
    type=click.Path(path_type=Path),
    required=True,
    multiple=True,
    help="Configuration file: TOML, or Kafka's server.properties; or one of each.",
)
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A value for one of Kafka's keys, instead of that of the files.",
)
@click.option(
    "--insecure-network", is_flag=True, help="Allow a listener beyond loopback without TLS."
)
def command(files: tuple[Path, ...], overrides: tuple[str, ...], insecure_network: bool) -> None:
    """Run a broker agent in the foreground.

    On SIGTERM it waits until other brokers lead its partitions, then ends.
    """
    with expected_failures():
        loaded = load_broker(NodeOptions(files, overrides, insecure_network))
        code = run_broker_process(loaded.settings, loaded.file, loaded.notes)
    sys.exit(code)
