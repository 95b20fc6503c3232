"""`logberg audit serve`: the console, a page over one log."""

import secrets
import ssl
import time
from contextlib import closing
from pathlib import Path

import click
import structlog

from audit.console.console import Console
from audit.console.log_source import FileSource, RemoteSource
from audit.places.remote import is_url
from audit.places.replicas import one_replica
from logberg.cli.failure import Failure
from logberg.cli.index_folder import index_folder
from logberg.cli.output import say
from logberg.client.access import Access, AccessError, read_token
from logberg.client.client import LogbergClient
from logberg.client.followed_log import FollowedLog
from logberg.commands.audit.console_reasons import reasons
from logberg.commands.audit.failures import failing, where_argument
from logberg.commands.audit.local_paths import LocalPath
from logberg.commands.audit.opening_option import keys_in_use
from logberg.processes.console_process import ConsoleAccess, ConsoleServer
from runtime.http.exposure import InsecureListenerError, is_loopback
from runtime.http.origins import origin_of
from runtime.sockets.tls import TlsFilesError, page_context

_TOKEN_BYTES = 24


@click.command("serve")
@where_argument
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port. [default: a free one]"
)
@click.option(
    "--name", "names", multiple=True, help="A further name of this host in URLs. Repeatable."
)
@click.option(
    "--index",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the index. [default: the user's cache]",
)
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with the token that callers must show.",
)
@click.option("--new-token", is_flag=True, help="Draw a token, and print it once.")
@click.option(
    "--cert",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The certificate for https (PEM); needs --key.",
)
@click.option(
    "--key",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The private key of --cert (PEM).",
)
@click.option(
    "--insecure-network", is_flag=True, help="Listen beyond this machine without TLS all the same."
)
@click.option(
    "--deadline",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="Seconds that one answer may take.",
)
@click.option(
    "--cluster-ca", help="The CA of the controllers' certificates, if WHERE is a controller (PEM)."
)
@click.option(
    "--cluster-token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with a token for the controllers, if WHERE is a controller.",
)
@click.option(
    "--cluster-key",
    type=LocalPath(),
    metavar="FILE",
    help="Show sealed addresses and the names behind pseudonyms: the cluster key, if WHERE is a "
    "controller or its folder.",
)
def command(
    where: str,
    host: str,
    port: int,
    names: tuple[str, ...],
    index: Path | None,
    token_file: Path | None,
    new_token: bool,
    cert: Path | None,
    key: Path | None,
    insecure_network: bool,
    deadline: float,
    cluster_ca: str | None,
    cluster_token_file: Path | None,
    cluster_key: Path | None,
) -> None:
    """Serve a page that searches WHERE, and shows its state at any moment, until Ctrl-C.

    WHERE may also be the URL of a running controller, such as http://127.0.0.1:19191. The console
    follows the log as it grows. It only reads. An index is built once, and kept up.

    Beyond loopback the console needs a token (--token-file or --new-token) and TLS (--cert, --key).
    """
    token = _token(token_file, is_new=new_token)
    if token is None and not is_loopback(host):
        raise Failure(
            f"will not listen on {host} without authentication: everybody who can reach it could "
            "read the whole history. Give --token-file FILE or --new-token, or listen on 127.0.0.1."
        )
    tls = _tls(cert, key)
    with failing():
        source = _source(where, cluster_ca, cluster_token_file)
    keys = None if cluster_key is None else keys_in_use(cluster_key, source, time.monotonic)
    console = Console(
        source,
        index if index is not None else index_folder(),
        now=time.monotonic,
        deadline_s=deadline,
        with_files=isinstance(source, FileSource),
        explain=reasons,
        opener=None if keys is None else keys.opener,
    )
    server = ConsoleServer(
        console,
        host,
        port,
        access=ConsoleAccess(token),
        log=structlog.get_logger(),
        tls=tls,
        insecure_network=insecure_network,
        names=names,
    )

    def tell(bound: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        url = f"{'http' if tls is None else 'https'}://{shown}:{bound}/"
        say(f"console  {url}{f'#token={token}' if new_token else ''}")
        say("Ctrl-C ends it")

    try:
        with closing(source):
            server.run(tell)
    except InsecureListenerError:
        raise Failure(
            f"will not listen on {host} without TLS: others on the network could read the token "
            "and the history. Give --cert and --key, or pass --insecure-network if the network is "
            "trusted."
        ) from None
    except BrokenPipeError:
        raise  # nobody reads what is printed: every command ends quietly then
    except OSError as error:
        raise Failure(str(error)) from None


def _token(file: Path | None, *, is_new: bool) -> str | None:
    if is_new and file is not None:
        raise Failure("give either --token-file or --new-token")
    if is_new:
        return secrets.token_urlsafe(_TOKEN_BYTES)
    try:
        return None if file is None else read_token(file)
    except AccessError as error:
        raise Failure(str(error)) from None


def _tls(cert: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise Failure("--cert and --key belong together: give both")
    try:
        return page_context(cert, key)
    except TlsFilesError as error:
        raise Failure(str(error)) from None


def _source(where: str, ca: str | None, token_file: Path | None) -> FileSource | FollowedLog:
    """Open the log. Raises what `failing` expects."""
    urls = tuple(where.split(","))
    if not all(origin_of(url) for url in urls):
        if is_url(where) and not where.startswith("file://"):
            return RemoteSource(lambda: one_replica(where), now=time.monotonic)
        return FileSource(lambda: one_replica(where))
    try:
        token = None if token_file is None else read_token(token_file)
        access = Access(token=token, ca=ca)
        return FollowedLog(LogbergClient(urls, access, 10.0), urls, 10.0)
    except (AccessError, TlsFilesError) as error:
        raise Failure(str(error)) from None
