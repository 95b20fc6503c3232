"""`logberg join`."""

import asyncio
from pathlib import Path

import click

from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, say
from logberg.client.client_errors import ClientError
from logberg.client.drawn_tokens import JoinToken
from logberg.client.node_joining import JoinError, join_cluster
from runtime.disk.secret_file import SecretFileError
from runtime.sockets.tls import TlsFilesError


@click.command("join")
@click.argument(
    "file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)
)
@click.option(
    "--controllers",
    required=True,
    envvar="LOGBERG_CONTROLLERS",
    show_envvar=True,
    help="URLs of controllers, separated by commas.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Where node.key, node.crt and ca.crt are written.",
)
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=10.0, show_default=True
)
@output_option
def command(*, file: Path, controllers: str, folder: Path, timeout: float, output: str) -> None:
    """Get this node's certificate with the join token in FILE; - is stdin.

    The node's key is drawn here and stays here. Name the three files in [tls] of the node's file.
    Repeat the command if its answer got lost: the same key gets the same certificate.
    """
    with click.open_file(str(file)) as stream:
        text = stream.readline()
    urls = tuple(url.strip().rstrip("/") for url in controllers.split(",") if url.strip())
    if not urls:
        raise click.UsageError("--controllers names no URL")
    try:
        wanted = JoinToken.parse(text)
        joined = asyncio.run(join_cluster(urls, wanted, folder, timeout))
    except ClientError as error:
        raise Failure(f"{error} [{error.code}]", error.reply) from None
    except (ValueError, JoinError, SecretFileError, TlsFilesError, OSError) as error:
        raise Failure(str(error)) from None
    files = {"cert": joined.certificate, "key": joined.key, "ca": joined.authority}
    if output == "json":
        print_json(
            {
                "principal": joined.principal,
                "serial": joined.serial,
                "expires": joined.expires.isoformat(),
                **{name: str(path) for name, path in files.items()},
            }
        )
        return
    say(f"this node is {joined.principal} until {joined.expires:%Y-%m-%d %H:%M} UTC")
    say(f"certificate {joined.serial}; put this into the node's file:")
    say("[tls]")
    for name, path in files.items():
        say(f'{name} = "{path.resolve()}"')
