"""`logberg audit serve` refuses what would show the history to strangers."""

import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from logberg.cli.index_folder import index_folder
from logberg.cli.main import cli
from tests.report.served import asked, serving
from tests.unit.audit.nodes import write_node


@pytest.fixture
def node(tmp_path: Path) -> Path:
    write_node(tmp_path / "node", 5, 1)
    return tmp_path / "node"


REFUSED = {
    "beyond loopback without a token": (["--host", "0.0.0.0"], "without authentication"),
    "beyond loopback without TLS": (["--host", "0.0.0.0", "--new-token"], "without TLS"),
    "a certificate without a key": (["--cert", "x.pem"], "--cert and --key belong together"),
    "two tokens": (["--new-token", "--token-file", "x"], "either --token-file or --new-token"),
    "a token that isn't there": (["--token-file", "nowhere"], "nowhere can't be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_refuses(node: Path, name: str) -> None:
    options, sentence = REFUSED[name]
    done = CliRunner().invoke(cli, ["audit", "serve", str(node), *options])
    assert done.exit_code == 1, done.output
    assert sentence in done.stderr


def test_a_place_without_a_log_is_told(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["audit", "serve", str(tmp_path)])
    assert done.exit_code == 1
    assert "holds no log" in done.stderr


def test_a_controller_that_is_not_there_is_told() -> None:
    done = CliRunner().invoke(cli, ["audit", "serve", "http://127.0.0.1:1"])
    assert done.exit_code == 1
    assert "127.0.0.1:1" in done.stderr


@pytest.mark.process
@pytest.mark.slow
def test_the_token_of_a_file_is_asked_for_on_loopback_too(node: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-token-of-ours\n")
    options = ("--token-file", str(tmp_path / "token"))
    with serving_with_token(node, tmp_path, options) as url:
        assert asked(url, "counts")[0] == 401
        assert asked(url, "counts", "a-token-of-yours")[0] == 401
        assert asked(url, "counts", "a-token-of-ours")[0] == 200
        with urllib.request.urlopen(url, timeout=10) as page:  # the page itself is open
            assert b"<title>" in page.read()


def serving_with_token(node: Path, tmp_path: Path, options: tuple[str, ...]):
    return serving(node, tmp_path / "index", *options, token="a-token-of-ours")


@pytest.mark.process
@pytest.mark.slow
def test_another_host_and_another_method_are_refused(node: Path, tmp_path: Path) -> None:
    with serving(node, tmp_path / "index") as url:
        assert asked(url, "counts", Host="evil.example")[0] == 403
        assert asked(url, "counts", Origin="https://evil.example")[0] == 403
        assert asked(url, "counts")[0] == 200


def test_the_index_lies_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LOGBERG_AUDIT_INDEX", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert index_folder() == tmp_path / "logberg" / "index"
    monkeypatch.setenv("LOGBERG_AUDIT_INDEX", str(tmp_path / "mine"))
    assert index_folder() == tmp_path / "mine"
