"""What a backend is made from."""

from collections.abc import Mapping

import pytest

from coordination.backend import Auth, BackendSettings
from coordination.errors import ConfigError
from runtime.asyncio_clock import of_running_loop
from runtime.randomness import seeded


def settings(
    scheme: str = "etcd+http", options: Mapping[str, str] | None = None
) -> BackendSettings:
    hosts = ("h1:1", "h2:2")
    return BackendSettings(
        scheme, hosts, "", 5.0, of_running_loop(), seeded(1), options=options or {}
    )


async def test_an_unknown_option_is_named_with_the_known_ones() -> None:
    given = settings(options={"retries": "3", "verify": "no"})
    given.refuse_unknown_options("retries", "verify", "lease")
    with pytest.raises(ConfigError, match=r"no option 'verify'; known ones: lease, retries$"):
        given.refuse_unknown_options("retries", "lease")
    with pytest.raises(ConfigError, match=r"no option 'retries'; there are none$"):
        given.refuse_unknown_options()


@pytest.mark.parametrize(
    ("scheme", "secure"),
    [("etcd+http", False), ("etcd+https", True), ("memory", False), ("quorum+https", True)],
)
async def test_a_scheme_asks_for_tls(scheme: str, secure: bool) -> None:
    assert settings(scheme).secure is secure


def test_secrets_are_not_shown() -> None:
    shown = repr(Auth("me", "secret-1", "secret-2"))
    assert "me" in shown
    assert "secret" not in shown
