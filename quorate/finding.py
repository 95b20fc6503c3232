"""How a command finds its cluster, and the options that say so.

Rule, in this order: `--controllers`, the environment's QUORATE_CONTROLLERS, the folder of
`quorate up` (`--data`, else ./quorate-data) by its cluster.json, which also names the CA and the
token; else `up`'s ports on this machine.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from quorate.client import Access, ClientError, QuorateClient, read_token
from quorate.failure import Failure
from quorate.local_cluster import (
    CLUSTER_FILE,
    DEFAULT_FOLDER,
    DEFAULT_PORT_BASE,
    HTTP_PORT,
    ClusterFile,
)

T = TypeVar("T")


class Cluster(msgspec.Struct, frozen=True):
    """Where the controllers are, and how to be let in."""

    urls: tuple[str, ...]
    access: Access
    deadline_s: float

    def ask(self, question: Callable[[QuorateClient], Awaitable[T]]) -> T:
        """Run one conversation with the controllers. Raises Failure."""

        async def conversation() -> T:
            async with QuorateClient(self.urls, self.access, self.deadline_s) as client:
                return await question(client)

        try:
            return asyncio.run(conversation())
        except ClientError as error:
            raise Failure(f"{error} [{error.code}]") from None
        except OSError as error:
            raise Failure(f"{error}; check --ca, --cert and --key") from None


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that find a cluster; it gets `cluster` and `output`."""

    @click.option("--controllers", help="URLs of controllers, separated by commas.")
    @click.option(
        "--data",
        type=click.Path(path_type=Path),
        default=DEFAULT_FOLDER,
        show_default=True,
        help="Folder of `quorate up`.",
    )
    @click.option("--token-file", type=click.Path(path_type=Path), help="File with a bearer token.")
    @click.option("--ca", help="The CA that signed the controllers' certificates (PEM).")
    @click.option("--cert", help="Our certificate (PEM), with --key.")
    @click.option("--key", help="Our certificate's key (PEM).")
    @click.option("--timeout", type=float, default=10.0, show_default=True, help="Seconds in all.")
    @output_option
    @wraps(command)
    def with_cluster(
        *,
        controllers: str | None,
        data: Path,
        token_file: Path | None,
        ca: str | None,
        cert: str | None,
        key: str | None,
        timeout: float,
        **others: Any,
    ) -> Any:
        cluster = find(controllers, data, token_file, Access(None, ca, cert, key), timeout)
        return command(cluster=cluster, **others)

    return with_cluster


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--output table|json`."""
    return click.option(
        "--output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="For people, or for programs.",
    )(command)


def find(
    controllers: str | None, data: Path, token_file: Path | None, access: Access, timeout: float
) -> Cluster:
    """Find the cluster as the head of this file says. Raises Failure."""
    named = controllers or os.environ.get("QUORATE_CONTROLLERS")
    path = data / CLUSTER_FILE
    known = _read(path) if path.exists() else None
    if named:
        urls = tuple(url.strip().rstrip("/") for url in named.split(",") if url.strip())
    elif known is not None:
        urls = tuple(node.url for node in known.nodes if node.role == "controller")
    else:
        urls = tuple(f"https://127.0.0.1:{DEFAULT_PORT_BASE + HTTP_PORT + n}" for n in range(3))
    if not urls or not all(url.startswith(("http://", "https://")) for url in urls):
        raise Failure(
            f"--controllers is {named!r}; URLs such as https://10.0.0.1:9191 are meant, "
            "separated by commas."
        )
    if known is not None:
        access = msgspec.structs.replace(access, ca=access.ca or known.ca)
        token_file = token_file or Path(known.token_file)
    if token_file is not None:
        try:
            access = msgspec.structs.replace(access, token=read_token(token_file))
        except ClientError as error:
            raise Failure(str(error)) from None
    return Cluster(urls, access, timeout)


def _read(path: Path) -> ClusterFile:
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClusterFile)
    except (OSError, msgspec.DecodeError) as error:
        raise Failure(f"{path} can't be read: {error}") from None
