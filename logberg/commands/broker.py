"""`logberg broker`."""

import sys
from pathlib import Path

import click
import msgspec

from logberg.cli.expected import expected_failures
from logberg.processes.broker_process import run_broker_process
from logberg.processes.settings import BrokerSettings, SettingsError, check_broker, load


@click.command("broker")
@click.option(
    "--config", type=click.Path(path_type=Path), required=True, help="Configuration file (TOML)."
)
@click.option(
    "--insecure-network", is_flag=True, help="Allow a listener beyond loopback without TLS."
)
def command(config: Path, insecure_network: bool) -> None:
    """Run a broker agent in the foreground.

    On SIGTERM it waits until other brokers lead its partitions, then ends.
    """
    with expected_failures():
        settings = load(config, BrokerSettings)
        if insecure_network:
            settings = msgspec.structs.replace(settings, insecure_network=True)
        if found := check_broker(settings):
            raise SettingsError(f"{config}: " + " ".join(found))
        code = run_broker_process(settings, config)
    sys.exit(code)
