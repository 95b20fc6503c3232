"""`logberg controller`."""

import sys
from pathlib import Path

import click

from logberg.cli.expected import expected_failures
from logberg.processes.combined_settings import check_beside
from logberg.processes.controller_process import run_controller
from logberg.processes.settings import ControllerSettings, SettingsError, check_controller, load


@click.command("controller")
@click.option(
    "--config", type=click.Path(path_type=Path), required=True, help="Configuration file (TOML)."
)
@click.option(
    "--insecure-network", is_flag=True, help="Allow a listener beyond loopback without TLS."
)
@click.option(
    "--with-broker", is_flag=True, help="Run a broker's agent in the same process (combined mode)."
)
def command(config: Path, insecure_network: bool, with_broker: bool) -> None:
    """Run a controller in the foreground.

    SIGTERM stops it in order; a broker's agent in the same process hands its leaders over first.
    SIGHUP reloads tokens and certificates.
    """
    with expected_failures():
        settings = load(config, ControllerSettings)
        if insecure_network:
            settings = settings.trusting_the_network()
        if with_broker:
            settings = settings.with_broker()
        problems = check_controller(settings) or check_beside(settings)
        if problems:
            raise SettingsError(f"{config}: " + " ".join(problems))
        code = run_controller(settings, config)
    sys.exit(code)
