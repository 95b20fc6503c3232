"""A command that can't reach its cluster says why in one sentence, also in JSON."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from metadata.messages.errors import ErrorReply
from runtime.sockets.tls import server_context
from tests.unit.logberg.edge import Said, run_whole
from tests.unit.logberg.listener import Listener
from tests.unit.runtime.certificates import Authority

NOBODY = "https://127.0.0.1:1"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


@pytest.fixture
def plain() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.fixture
def encrypted(authority: Authority) -> Iterator[Listener]:
    listener = Listener(server_context(authority.issue("quorum://c/1")))
    yield listener
    listener.close()


def brokers(*more: str, env: dict[str, str] | None = None) -> Said:
    return run_whole("brokers", "list", "--timeout", "0.5", *more, env=env)


def test_no_cluster_file_names_what_is_missing_without_asking_anybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("somebody was asked")

    monkeypatch.setattr("logberg.cli.connection_options.LogbergClient", refuse)
    said = brokers("--data", str(tmp_path))
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert f"{tmp_path}/cluster.json is missing" in said.err
    for way in ("logberg up", "--data", "--controllers", "LOGBERG_CONTROLLERS"):
        assert way in said.err


@pytest.mark.parametrize("content", ["", "{}", "[", "\\xff"])
def test_a_cluster_file_that_is_damaged_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "cluster.json").write_bytes(content.encode().decode("unicode_escape").encode("l1"))
    said = brokers("--data", str(tmp_path))
    assert said.code == 1
    assert f"{tmp_path}/cluster.json can't be read" in said.err


def test_plain_http_to_a_tls_port(encrypted: Listener) -> None:
    said = brokers("--controllers", encrypted.url.replace("https", "http"))
    assert said.code == 1
    assert "if it uses TLS, use https://" in said.err


def test_https_to_a_plain_port(plain: Listener, authority: Authority) -> None:
    said = brokers("--controllers", plain.url.replace("http", "https"), "--ca", str(authority.path))
    assert said.code == 1
    assert "doesn't use TLS; use http://" in said.err


def test_an_unknown_authority(encrypted: Listener) -> None:
    said = brokers("--controllers", encrypted.url)
    assert said.code == 1
    assert "name the CA of its cluster with --ca (LOGBERG_CA)" in said.err


@pytest.mark.parametrize("missing", ["ca", "cert", "key"])
def test_files_that_are_not_there(authority: Authority, missing: str, tmp_path: Path) -> None:
    files = authority.issue("user://c/alice")._asdict()
    files[missing] = tmp_path / "nothing.pem"
    named = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    said = brokers("--controllers", NOBODY, *named)
    assert said.code == 1
    assert f"{tmp_path}/nothing.pem cannot be read: No such file or directory" in said.err
    assert "check --ca, --cert and --key" in said.err


def test_a_ca_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    said = brokers("--controllers", NOBODY, "--ca", str(tmp_path / "ca.pem"))
    assert said.code == 1
    assert "holds no usable certificate in PEM form" in said.err


def test_a_token_file_that_is_not_there_or_empty(tmp_path: Path) -> None:
    said = brokers("--controllers", NOBODY, "--token-file", str(tmp_path / "t"))
    assert said.code == 1
    assert f"the token file {tmp_path}/t can't be read (No such file or directory)" in said.err
    (tmp_path / "t").write_text("two words\n")
    said = brokers("--controllers", NOBODY, "--token-file", str(tmp_path / "t"))
    assert said.code == 1
    assert "holds no token" in said.err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--cert", "c", "--key", "k"), "--cert needs --ca"),
        (("--cert", "c", "--ca", "a"), "--cert needs --key"),
        (("--key", "k", "--ca", "a"), "--key needs --cert"),
        (("--timeout", "0"), "--timeout"),
        (("--timeout", "soon"), "--timeout"),
        (("--controllers", "127.0.0.1:19191"), "use URLs such as https://10.0.0.1:9191"),
        (("--controllers", ","), "use URLs such as https://10.0.0.1:9191"),
        (("--controllers", "https://a/path"), "use URLs such as https://10.0.0.1:9191"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    given: tuple[str, ...], sentence: str
) -> None:
    said = brokers("--controllers", NOBODY, *given)
    assert said.code == 2
    assert sentence in said.err
    assert "Usage:" in said.err


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["brokers", "list", "--controllers", NOBODY], 1, "NO_ANSWER"),
        (["brokers", "list", "--data", "/nowhere"], 1, "NOT_DONE"),
        (["brokers", "list", "--controllers", NOBODY, "--cert", "c"], 2, "WRONG_USAGE"),
        (["brokers", "list", "--no-such-option"], 2, "WRONG_USAGE"),
        (["brokers", "lst"], 2, "WRONG_USAGE"),
        (["log", "verify", "/nowhere"], 1, "NOT_DONE"),
        (["audit", "who", "/nowhere", "topic:a"], 1, "NOT_DONE"),
    ],
)
@pytest.mark.parametrize("how", [["-o", "json"], ["--output", "json"], ["--output=json"], []])
def test_errors_are_json_where_output_is(
    arguments: list[str], code: int, error: str, how: list[str]
) -> None:
    env = {} if how else {"LOGBERG_OUTPUT": "json"}
    said = run_whole(*arguments, *how, env={**env, "LOGBERG_TIMEOUT": "0.3"})
    assert said.code == code
    assert said.out == ""
    reply = msgspec.json.decode(said.err, type=ErrorReply, strict=True)
    assert set(json.loads(said.err)) == {
        field.encode_name for field in msgspec.structs.fields(ErrorReply)
    }
    assert reply.code == error
    assert reply.message


def test_a_controller_that_gives_one_page_for_ever_is_left(plain: Listener) -> None:
    page = b'{"brokers":[],"offset":1,"epoch":1,"continuation":"again"}'
    plain.answer = lambda _method, _path: ("200 OK", page)
    said = brokers("--controllers", plain.url)
    assert said.code == 1
    assert "the same page came twice" in said.err


def test_the_error_of_a_controller_comes_whole(plain: Listener) -> None:
    error = ErrorReply(
        "POLICY_VIOLATION", "no", leader_id=3, leader_epoch=7, details={"lastInSync": "2"}
    )
    plain.answer = lambda _method, _path: ("400 Bad Request", msgspec.json.encode(error))
    said = brokers("--controllers", plain.url, "-o", "json")
    assert msgspec.json.decode(said.err, type=ErrorReply) == error
