"""Debian's Prometheus and promtool, installed where that is allowed."""

import shutil

import pytest

from tests.debian import NotInstalledError, install


def need_prometheus() -> None:
    """Skip the test where Prometheus is missing and can't be installed."""
    try:
        install(
            "prometheus",
            is_there=lambda: (
                shutil.which("promtool") is not None and shutil.which("prometheus") is not None
            ),
        )
    except NotInstalledError as error:
        pytest.skip(str(error))
