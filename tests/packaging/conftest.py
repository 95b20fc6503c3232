"""The wheel is built, installed and used once for all tests of this folder."""

from pathlib import Path

import pytest

from tests.packaging.alien import ROOT, Alien, build


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session")
def alien(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Alien:
    return Alien(tmp_path_factory.mktemp("alien"), wheel)
