"""`logberg broker`."""

import sys
from pathlib import Path

import click

from logberg.cli.expected import expected_failures
from logberg.cli.node_options import node_options
from logberg.processes.broker_process import run_broker_process
from logberg.processes.settings.node_settings import NodeOptions, load_broker


@click.command("broker")
@node_options
def command(files: tuple[Path, ...], overrides: tuple[str, ...], insecure_network: bool) -> None:
    """Run a broker agent in the foreground.

    On SIGTERM it waits until other brokers lead its partitions, then ends.
    """
    with expected_failures():
        loaded = load_broker(NodeOptions(files, overrides, insecure_network))
        code = run_broker_process(loaded.settings, loaded.file, loaded.notes)
    sys.exit(code)
