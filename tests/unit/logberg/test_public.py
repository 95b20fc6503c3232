"""The names that programs import from `logberg`."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import logberg
from logberg import public

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = (
    "audit|broker_agent|controller|coordination|kafka_listener|ledger|metadata|quorum|runtime"
    "|snapshots|logberg"
)
IMPORT = re.compile(rf"^\s*(?:>>> )?(?:from|import)\s+((?:{PACKAGES})\b[\w.]*)", re.MULTILINE)
SHOWN = [
    *ROOT.glob("examples/*.py"),
    *(path for path in ROOT.glob("docs/**/*.md") if "adr" not in path.parts),
    ROOT / "README.md",
]


def test_a_star_and_a_type_checker_get_the_same_names() -> None:
    found: dict[str, object] = {}
    exec("from logberg import *", found)
    assert set(found) - {"__builtins__"} == set(public.__all__)
    stub = Path(logberg.__file__).with_suffix(".pyi").read_text()
    assert stub.startswith("from logberg.public import *")


@pytest.mark.parametrize("name", public.__all__)
def test_a_name_is_there_and_is_no_modules_name(name: str) -> None:
    assert getattr(logberg, name) is getattr(public, name)
    assert name in dir(logberg)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"logberg.{name}")


def test_there_is_no_other_name() -> None:
    name = "nonsense"
    with pytest.raises(AttributeError, match="module 'logberg' has no attribute 'nonsense'"):
        getattr(logberg, name)


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
    assert set(public.__all__) - explained == set()


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_docs_and_examples_import_public_names_only(path: Path) -> None:
    assert set(IMPORT.findall(path.read_text())) <= {"logberg", "logberg.spark"}
