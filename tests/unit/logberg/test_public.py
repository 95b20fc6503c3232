"""The names that programs import from `logberg`."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import logberg
from logberg import public

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = "audit|broker_agent|controller|ledger|metadata|quorum|runtime|snapshots|logberg"
IMPORT = re.compile(rf"^\s*(?:>>> )?(?:from|import)\s+((?:{PACKAGES})\b[\w.]*)", re.MULTILINE)
SHOWN = [
    *ROOT.glob("examples/*.py"),
    *(path for path in ROOT.glob("docs/**/*.md") if "adr" not in path.parts),
    ROOT / "README.md",
]


def test_the_three_lists_of_names_are_one() -> None:
    tree = ast.parse(Path(logberg.__file__).read_text())
    for_checkers = [
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "logberg.public"
        for name in node.names
    ]
    assert sorted(for_checkers) == sorted(logberg.__all__) == sorted(public.__all__)


@pytest.mark.parametrize("name", public.__all__)
def test_a_name_is_there_and_is_no_modules_name(name: str) -> None:
    assert getattr(logberg, name) is getattr(public, name)
    assert name in dir(logberg)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"logberg.{name}")


def test_there_is_no_other_name() -> None:
    with pytest.raises(AttributeError, match="module 'logberg' has no attribute 'nonsense'"):
        _ = logberg.nonsense


def test_importing_the_package_loads_the_standard_library_only() -> None:
    program = "import logberg, sys; print(*sys.modules)"
    said = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in said.stdout.split()}
    assert not loaded & {"aiohttp", "click", "msgspec", "structlog", *PACKAGES.split("|")[:-1]}


def test_the_reference_explains_every_name() -> None:
    text = (ROOT / "docs" / "reference-python.md").read_text()
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    explained = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", outside))))
    assert set(logberg.__all__) - explained == set()


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_docs_and_examples_import_public_names_only(path: Path) -> None:
    assert set(IMPORT.findall(path.read_text())) <= {"logberg", "logberg.spark"}
