"""`logberg witness`."""

import sys
from pathlib import Path

import click
import msgspec

from logberg.cli.expected import expected_failures
from logberg.cli.failure import Failure
from logberg.processes.settings.settings_files import load
from logberg.witness.process import run_witness
from logberg.witness.settings import WitnessedLogSettings, WitnessSettings


@click.command("witness")
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file of settings; the options below go before it.",
)
@click.option("--name", help="The name of the witness's key, such as witness.example.org/one.")
@click.option("--data", help="The witness's folder, of its own.")
@click.option("--listen", help="host:port of its listener. [default: 127.0.0.1:19390]")
@click.option(
    "--key",
    "keys",
    multiple=True,
    help="A controller's head.pub, or the line in it, of the one log to cosign. Repeatable.",
)
@click.option(
    "--insecure-network", is_flag=True, help="Listen beyond this machine without TLS all the same."
)
def command(
    *,
    config: Path | None,
    name: str | None,
    data: str | None,
    listen: str | None,
    keys: tuple[str, ...],
    insecure_network: bool,
) -> None:
    """Run a witness in the foreground: it cosigns the heads of logs that only grew.

    A witness runs where none of the controllers runs, under other people's hands. It needs the
    controllers' public keys (head.pub in their folders) and nothing else. SIGTERM stops it, SIGHUP
    reads the keys of the logs again.
    """
    changes: dict[str, object] = {}
    if listen is not None:
        changes["listen"] = listen
    if keys:
        changes["logs"] = (WitnessedLogSettings(keys=tuple(map(_absolute, keys))),)
    if insecure_network:
        changes["insecure_network"] = True

    def read() -> WitnessSettings:
        return msgspec.structs.replace(_settings(config, name, data), **changes)

    with expected_failures():
        code = run_witness(read(), config or Path.cwd() / "witness.toml", read)
    sys.exit(code)


def _settings(config: Path | None, name: str | None, data: str | None) -> WitnessSettings:
    """Return what the file says, and name and folder in the place of its own. Raises Failure."""
    if data is not None:
        data = str(Path(data).absolute())
    if config is not None:
        found = load(config, WitnessSettings)
        return msgspec.structs.replace(found, name=name or found.name, data=data or found.data)
    if name is None or data is None:
        raise Failure("name a file with --config, or give --name, --data and --key")
    return WitnessSettings(name=name, data=data)


def _absolute(key: str) -> str:
    """A file on the command line is relative to the current folder, not to --config."""
    return key if "+" in key else str(Path(key).absolute())
