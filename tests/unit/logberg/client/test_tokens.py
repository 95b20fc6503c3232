"""Where a token is sent, with real listening sockets: an honest one, and an attacker's."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from logberg.cli.main import cli
from logberg.client.access import Access
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.local.cluster_file import ClusterFile, LocalProcess
from runtime.sockets.tls import server_context
from tests.unit.logberg.listener import Listener
from tests.unit.runtime.certificates import Authority

TOKEN = "qk_this-is-the-secret"
OURS, THEIRS = "ourCluster", "anotherCluster"


@pytest.fixture
def listeners() -> Iterator[Any]:
    made: list[Listener] = []

    def make(tls: ssl.SSLContext | None = None) -> Listener:
        made.append(Listener(tls))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


def by(authority: Authority, uri: str | None, name: str = "node") -> ssl.SSLContext:
    return server_context(authority.issue(uri, name))


def ask(urls: list[str], **more: Any) -> Any:
    async def main() -> Any:
        async with LogbergClient(urls, Access(TOKEN, **more), deadline_s=0.5) as client:
            return await client.get("/v1/brokers", dict)

    return asyncio.run(main())


def heard_of_token(listener: Listener) -> bool:
    return TOKEN.encode() in listener.heard


def test_a_controller_that_proves_itself_gets_the_token(listeners, authority) -> None:
    honest = listeners(by(authority, f"quorum://{OURS}/1"))
    assert ask([honest.url], ca=str(authority.path), cluster_id=OURS)["offset"] == 1
    assert heard_of_token(honest)


@pytest.mark.parametrize(
    "uri",
    [f"broker://{OURS}/1", f"user://{OURS}/eve", f"quorum://{THEIRS}/1", "quorum:///1", None],
)
def test_a_certificate_of_our_ca_for_anything_else_gets_nothing(listeners, authority, uri) -> None:
    thief = listeners(by(authority, uri))
    with pytest.raises(ClientError, match="is not sent to"):
        ask([thief.url], ca=str(authority.path), cluster_id=OURS)
    assert thief.heard == b"", "not one byte of the request"


def test_a_foreign_ca_gets_nothing(listeners, authority, tmp_path: Path) -> None:
    thief = listeners(by(Authority(tmp_path / "other"), f"quorum://{OURS}/1"))
    with pytest.raises(ClientError, match="--ca"):
        ask([thief.url], ca=str(authority.path), cluster_id=OURS)
    assert thief.heard == b""


def test_a_leader_on_plain_http_is_not_followed(listeners, authority) -> None:
    honest = listeners(by(authority, f"quorum://{OURS}/1"))
    thief = listeners()
    honest.leader_is(thief.url)
    with pytest.raises(ClientError, match="another leads"):
        ask([honest.url], ca=str(authority.path), cluster_id=OURS)
    assert thief.heard == b""


@pytest.mark.parametrize("uri", [f"broker://{OURS}/9", f"quorum://{THEIRS}/1"])
def test_a_leader_that_does_not_prove_itself_gets_nothing(listeners, authority, uri) -> None:
    """The cluster isn't known beforehand: it is the first one that proved itself."""
    honest = listeners(by(authority, f"quorum://{OURS}/1"))
    thief = listeners(by(authority, uri, "thief"))
    honest.leader_is(thief.url)
    with pytest.raises(ClientError):
        ask([honest.url], ca=str(authority.path))
    assert heard_of_token(honest)
    assert thief.heard == b""


def test_a_leader_that_proves_itself_is_followed(listeners, authority) -> None:
    follower = listeners(by(authority, f"quorum://{OURS}/1"))
    leader = listeners(by(authority, f"quorum://{OURS}/2", "leader"))
    follower.leader_is(leader.url)
    assert ask([follower.url], ca=str(authority.path))["offset"] == 1
    assert heard_of_token(leader)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_an_error_and_not_followed(listeners, authority, status) -> None:
    honest = listeners(by(authority, f"quorum://{OURS}/1"))
    thief = listeners(by(authority, f"quorum://{OURS}/2", "thief"))
    honest.status, honest.more = status, f"location: {thief.url}/v1/brokers\r\n"
    with pytest.raises(ClientError):
        ask([honest.url], ca=str(authority.path))
    assert thief.heard == b""


def test_plain_http_gets_a_token_only_when_that_is_said_and_the_server_named(listeners) -> None:
    named, thief = listeners(), listeners()
    with pytest.raises(ClientError, match="--send-token-in-clear"):
        ask([named.url])
    assert named.heard == b""
    assert ask([named.url], token_in_clear=True)["offset"] == 1
    assert heard_of_token(named)
    named.leader_is(thief.url)
    with pytest.raises(ClientError):
        ask([named.url], token_in_clear=True)
    assert thief.heard == b""


# The command line.


@pytest.fixture
def folder(tmp_path: Path, authority: Authority) -> Path:
    """A folder of `logberg up`, without its processes."""
    made = tmp_path / "logberg-data"
    made.mkdir()
    (made / "admin.token").write_text(TOKEN + "\n")
    return made


def write(folder: Path, authority: Authority, url: str) -> None:
    node = LocalProcess("controller", 1, 0, url, None, str(folder / "controller-1"))
    file = ClusterFile(OURS, 1, 0, 19000, str(authority.path), str(folder / "admin.token"), (node,))
    (folder / "cluster.json").write_bytes(msgspec.json.encode(file))


def run(*arguments: str, env: dict[str, str] | None = None) -> Any:
    return CliRunner(env=env).invoke(cli, [*arguments, "--timeout", "0.5"])


LIST = ("brokers", "list")


def test_a_folders_token_goes_to_its_own_controllers(listeners, authority, folder) -> None:
    honest = listeners(by(authority, f"quorum://{OURS}/1"))
    write(folder, authority, honest.url)
    for arguments, env in (
        ((), {}),
        (("--controllers", honest.url), {}),
        ((), {"LOGBERG_CONTROLLERS": honest.url + "/"}),
    ):
        honest.heard = b""
        done = run(*LIST, "--data", str(folder), *arguments, env=env)
        assert done.exit_code == 0, done.output
        assert heard_of_token(honest)


@pytest.mark.parametrize("with_tls", [False, True])
@pytest.mark.parametrize("how", ["option", "variable"])
def test_controllers_of_another_cluster_do_not_get_a_folders_token(
    listeners, authority, folder, with_tls: bool, how: str
) -> None:
    honest = listeners(by(authority, f"quorum://{OURS}/1"))
    # Even one that the folder's own CA vouches for.
    thief = listeners(by(authority, f"quorum://{OURS}/2", "thief") if with_tls else None)
    write(folder, authority, honest.url)
    env = {"LOGBERG_DATA": str(folder)}
    more: tuple[str, ...] = ()
    if how == "option":
        more = ("--controllers", thief.url)
    else:
        env["LOGBERG_CONTROLLERS"] = thief.url
    done = run(*LIST, *more, "--ca", str(authority.path), env=env)
    assert thief.heard, "it was asked"
    assert not heard_of_token(thief)
    assert f"no token is sent: {thief.url} is not a controller of the cluster in" in done.stderr
    assert "--token-file" in done.stderr


def test_a_folders_token_that_is_named_stays_with_its_cluster(listeners, authority, folder) -> None:
    thief = listeners(by(authority, f"quorum://{THEIRS}/1"))
    write(folder, authority, "https://127.0.0.1:1")
    done = run(*LIST, "--controllers", thief.url, "--token-file", str(folder / "admin.token"))
    assert done.exit_code == 1
    assert "is not sent to" in done.stderr
    assert thief.heard == b""


def test_an_explicit_token_goes_where_it_is_told_to(listeners, authority, tmp_path) -> None:
    file = tmp_path / "a.token"
    file.write_text(TOKEN)
    honest = listeners(by(authority, f"quorum://{THEIRS}/1"))
    done = run(
        *LIST, "--controllers", honest.url, "--token-file", str(file), "--ca", str(authority.path)
    )
    assert done.exit_code == 0, done.output
    assert heard_of_token(honest)
    plain = listeners()
    arguments = (*LIST, "--controllers", plain.url, "--token-file", str(file))
    done = run(*arguments)
    assert done.exit_code == 1
    assert "--send-token-in-clear" in done.stderr
    assert plain.heard == b""
    assert run(*arguments, "--send-token-in-clear").exit_code == 0
    assert heard_of_token(plain)
    plain.heard = b""
    assert run(*arguments, env={"LOGBERG_SEND_TOKEN_IN_CLEAR": "1"}).exit_code == 0
    assert heard_of_token(plain)


def test_data_on_the_command_line_beats_controllers_in_the_environment(
    listeners, authority, folder
) -> None:
    honest, other = listeners(by(authority, f"quorum://{OURS}/1")), listeners()
    write(folder, authority, honest.url)
    done = run(*LIST, "--data", str(folder), env={"LOGBERG_CONTROLLERS": other.url})
    assert done.exit_code == 0, done.output
    assert heard_of_token(honest)
    assert other.heard == b""
