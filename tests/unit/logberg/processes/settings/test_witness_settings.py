"""A controller's witnesses: what its file may say, and what is opened for it."""

from pathlib import Path
from typing import Any

import pytest

from ledger.merkle.notes import COSIGNATURE, SigningKey
from logberg.processes.settings.controller_checks import check_controller
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.settings_files import load
from logberg.processes.settings.witness_settings import (
    WitnessesSettings,
    WitnessPlaceSettings,
    WitnessServerSettings,
    witness_problems,
)
from tests.unit.logberg.processes.settings.test_settings import write

KEY = SigningKey("w", bytes(32), COSIGNATURE).public.text
SERVER = WitnessServerSettings(url="https://w:1", key=KEY)
PLACE = WitnessPlaceSettings(to="/mnt/heads")


def table(**more: Any) -> WitnessesSettings:
    return WitnessesSettings(**{"servers": (SERVER,), "places": (PLACE,), **more})


def test_a_file_with_witnesses_is_read(tmp_path: Path) -> None:
    given = {
        "needed": 2,
        "window_ms": 20_000,
        "servers": [{"url": "https://w:1", "key": KEY}],
        "places": [{"to": "s3://bucket/heads", "lock_days": 30}],
    }
    settings = load(write(tmp_path, witnesses=given), ControllerSettings)
    assert check_controller(settings) == []
    assert settings.witnesses is not None
    assert settings.witnesses.servers == (SERVER,)
    assert settings.witnesses.places[0].lock_days == 30


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (WitnessesSettings(), "names nobody"),
        (table(needed=0), "needed is 0"),
        (table(needed=3), "needed is 3; there are 2"),
        (table(window_ms=9_999), "window_ms is 9999"),
        (table(servers=(WitnessServerSettings(url="w:1", key=KEY),)), "use a URL"),
        (table(servers=(WitnessServerSettings(url="http://w", key="k"),)), "servers.key"),
        (
            table(
                servers=(
                    WitnessServerSettings(
                        url="http://w", key=SigningKey("w", bytes(32)).public.text
                    ),
                )
            ),
            "of kind 4",
        ),
        (table(servers=(SERVER, SERVER)), "names one twice"),
        (table(places=(WitnessPlaceSettings(to="gs://b/x"),)), "names no place"),
        (table(places=(WitnessPlaceSettings(to=""),)), "names no place"),
        (table(places=(WitnessPlaceSettings(to="/a", every_ms=-1),)), "0 or more"),
        (table(places=(WitnessPlaceSettings(to="/a", lock_days=1),)), "s3:// only"),
    ],
)
def test_what_is_wrong_is_named(given: WitnessesSettings, says: str) -> None:
    (problem,) = witness_problems(given, 10_000)
    assert says in problem


def test_without_signed_heads_there_is_nothing_to_witness() -> None:
    (problem,) = witness_problems(table(), 0)
    assert "signed_head_ms" in problem
    assert witness_problems(None, 0) == []
