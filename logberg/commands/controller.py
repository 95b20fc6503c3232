"""`logberg controller`."""

import sys
from pathlib import Path

import click

from logberg.cli.expected import expected_failures
from logberg.processes.controller_process import run_controller
from logberg.processes.settings import ControllerSettings, SettingsError, check_controller, load


@click.command("controller")
@click.option(
    "--config", type=click.Path(path_type=Path), required=True, help="Configuration file (TOML)."
)
@click.option(
    "--insecure-network", is_flag=True, help="Allow a listener beyond loopback without TLS."
)
def command(config: Path, insecure_network: bool) -> None:
    """Run a controller in the foreground.

    SIGTERM stops it in order. SIGHUP reloads tokens and certificates.
    """
    with expected_failures():
        settings = load(config, ControllerSettings)
        if insecure_network:
            settings = settings.trusting_the_network()
        problems = check_controller(settings)
        if problems:
            raise SettingsError(f"{config}: " + " ".join(problems))
        code = run_controller(settings, config)
    sys.exit(code)
