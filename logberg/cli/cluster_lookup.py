"""How a command finds its cluster, and which credentials it sends there.

Rule, in this order: `--controllers`, `--data`, the environment's LOGBERG_CONTROLLERS, the folder of
`logberg up` (LOGBERG_DATA, else that of `default_folder.py`) by its cluster.json. The CA and the
token of a cluster.json are used only for the controllers that it lists. A caller that names other
controllers must also name their CA and token.
"""

from pathlib import Path

import click
import msgspec

from logberg.cli.failure import Failure
from logberg.client.access import IN_CLEAR, PLAIN, Access, AccessError, read_token
from logberg.local.cluster_file import CLUSTER_FILE, ClusterFile
from runtime.http.origins import origin_of


class Named(msgspec.Struct, frozen=True):
    """The options that the caller gave."""

    controllers: str | None
    data: Path
    token_file: Path | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    token_in_clear: bool = False


class FoundCluster(msgspec.Struct, frozen=True):
    """The controllers' URLs, and the credentials for them."""

    urls: tuple[str, ...]
    access: Access
    note: str = ""
    """Why a token is not sent although there is one; empty otherwise."""


def find(named: Named) -> FoundCluster:
    """Find the cluster as the head of this file says. Raises Failure, click.UsageError."""
    path = named.data / CLUSTER_FILE
    known = read_cluster_file(path) if path.exists() else None
    urls = _urls(named, known, path)
    ours = known is not None and _are_of(urls, known)
    ca = named.ca or (known.ca if known is not None and ours else None)
    _check_pair(named, ca)
    token_file = named.token_file
    note = ""
    if token_file is None and known is not None:
        if ours:
            token_file = Path(known.token_file)
        elif named.cert is None:
            note = (
                f"no token is sent: {urls[0]} is not a controller of the cluster in {path}; name "
                "the token of its own cluster with --token-file (LOGBERG_TOKEN_FILE), and its CA "
                "with --ca (LOGBERG_CA)"
            )
    access = Access(
        None, ca, named.cert, named.key, known.cluster_id if known is not None and ours else None
    )
    if token_file is not None:
        access = _with_token(access, token_file, urls, in_clear=named.token_in_clear)
    return FoundCluster(urls, access, note)


def read_cluster_file(path: Path) -> ClusterFile:
    """Read a cluster.json. Raises Failure."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=ClusterFile)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Failure(f"{path} can't be read: {error}") from None


def _urls(named: Named, known: ClusterFile | None, path: Path) -> tuple[str, ...]:
    if named.controllers is None:
        if known is None:
            raise Failure(
                f"{path} is missing, so nothing says where the controllers are: start a cluster "
                "here with `logberg up`, name the folder of one with --data (LOGBERG_DATA), or "
                "its controllers with --controllers (LOGBERG_CONTROLLERS)"
            )
        urls = tuple(node.url for node in known.nodes if node.role == "controller")
        if not urls:
            raise Failure(f"{path} lists no controller: run `logberg up` again, or remove it")
        return urls
    urls = tuple(url.strip().rstrip("/") for url in named.controllers.split(",") if url.strip())
    if not urls or not all(origin_of(url) for url in urls):
        raise click.UsageError(
            f"--controllers is {named.controllers!r}; use URLs such as https://10.0.0.1:9191, "
            "separated by commas."
        )
    return urls


def _are_of(urls: tuple[str, ...], known: ClusterFile) -> bool:
    listed = {origin_of(node.url) for node in known.nodes if node.role == "controller"}
    return all(origin_of(url) in listed for url in urls)


def _check_pair(named: Named, ca: str | None) -> None:
    if (named.cert is None) != (named.key is None):
        given, missing = ("--cert", "--key") if named.key is None else ("--key", "--cert")
        raise click.UsageError(
            f"{given} needs {missing}: a certificate is used together with its key."
        )
    if named.cert is not None and ca is None:
        raise click.UsageError(
            "--cert needs --ca: name the CA that signed the controllers' certificates."
        )


def _with_token(access: Access, file: Path, urls: tuple[str, ...], *, in_clear: bool) -> Access:
    """Add the token of `file`, for the cluster it belongs to where that is known."""
    plain = next((url for url in urls if url.startswith(PLAIN)), None)
    if plain is not None and not in_clear:
        raise Failure(
            f"the token of {file} is not sent to {plain}: over plain HTTP others can read it, "
            f"and the server can't prove its identity. Use https://, or allow it with {IN_CLEAR}"
        )
    owner = _owner(file)
    if owner is not None:
        access = msgspec.structs.replace(
            access, cluster_id=owner.cluster_id, ca=access.ca or owner.ca
        )
    try:
        return msgspec.structs.replace(access, token=read_token(file), token_in_clear=in_clear)
    except AccessError as error:
        raise Failure(str(error)) from None


def _owner(token_file: Path) -> ClusterFile | None:
    """The cluster whose cluster.json, beside the token's file, says that the token is its own."""
    beside = token_file.parent / CLUSTER_FILE
    if not beside.exists():
        return None
    known = read_cluster_file(beside)
    same = Path(known.token_file).resolve() == token_file.resolve()
    return known if same else None
