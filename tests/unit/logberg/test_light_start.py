"""Services start without what they don't use; everybody else finds everything as it was."""

import contextlib
import gc
import os
import subprocess
import sys

import cryptography
import pytest

from logberg.light_start import light_start

_SHOW = """
import gc, os, sys
from logberg.cli import cli
cli.get_command(None, sys.argv[1])
print(sorted({name.partition(".")[0] for name in sys.modules}))
print(gc.isenabled(), os.environ.get("SSL_CERT_FILE"))
import rich.table, cryptography.x509
"""


def modules_of(command: str) -> tuple[str, str]:
    out = subprocess.run(
        [sys.executable, "-c", _SHOW, command],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "SSL_CERT_FILE": "/some/ca.pem"},
    ).stdout
    found, rest = out.strip().splitlines()
    return found, rest


@pytest.mark.parametrize("command", ["controller", "broker"])
def test_a_service_imports_no_library_that_it_has_no_use_for(command: str) -> None:
    found, rest = modules_of(command)
    for name in ("rich", "pygments", "cryptography"):
        assert f"'{name}'" not in found
    assert "'aiohttp'" in found
    assert rest == "True /some/ca.pem"


def test_a_command_for_people_is_imported_as_usual() -> None:
    found, _ = modules_of("status")
    assert "'rich'" in found


def test_everything_is_as_before_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/some/ca.pem")
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    before = dict(sys.modules)
    with contextlib.suppress(ImportError), light_start(needs_authorities=False):
        assert os.environ["SSL_CERT_FILE"] == os.devnull
        assert not gc.isenabled()
        raise ImportError("also when it fails")
    assert os.environ["SSL_CERT_FILE"] == "/some/ca.pem"
    assert "SSL_CERT_DIR" not in os.environ
    assert gc.isenabled()
    assert sys.modules == before


def test_a_client_by_the_systems_authorities_keeps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/some/ca.pem")
    with light_start(needs_authorities=True):
        assert os.environ["SSL_CERT_FILE"] == "/some/ca.pem"


def test_what_is_imported_already_stays() -> None:
    with light_start(needs_authorities=True):
        assert sys.modules["cryptography"] is cryptography
