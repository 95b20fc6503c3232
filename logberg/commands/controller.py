"""`logberg controller`."""

import sys
from pathlib import Path

import click

from logberg.cli.expected import expected_failures
from logberg.cli.node_options import node_options
from logberg.processes.controller_process import run_controller
from logberg.processes.settings.node_settings import NodeOptions, load_controller


@click.command("controller")
@node_options
@click.option(
    "--with-broker", is_flag=True, help="Run a broker's agent in the same process (combined mode)."
)
def command(
    files: tuple[Path, ...], overrides: tuple[str, ...], insecure_network: bool, with_broker: bool
) -> None:
    """Run a controller in the foreground.

    SIGTERM stops it in order; a broker's agent in the same process hands its leaders over first.
    SIGHUP reloads tokens and certificates.
    """
    options = NodeOptions(files, overrides, insecure_network, with_broker)
    with expected_failures():
        loaded = load_controller(options)
        code = run_controller(
            loaded.settings,
            loaded.file,
            loaded.notes,
            lambda: load_controller(options).settings,
        )
    sys.exit(code)
