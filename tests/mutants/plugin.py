"""Runs pytest on a broken build: `python -m pytest -p tests.mutants.plugin --mutant NAME TESTS`."""

import contextlib

import pytest

from tests.mutants import seed_searches  # noqa: F401 - the whole product, imported while it is sound
from tests.mutants.patches import patched
from tests.mutants.table import MUTANTS

_broken = contextlib.ExitStack()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mutant", choices=sorted(MUTANTS), help="the protection to switch off")


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--mutant")
    if name:
        _broken.enter_context(patched(MUTANTS[name].patches))


def pytest_unconfigure(config: pytest.Config) -> None:
    _broken.close()
