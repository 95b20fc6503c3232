"""In a checkout the folders at the root are packages (ADR 0026), with common names.

If another distribution installs a package of such a name, it must not be imported instead of ours.
"""

import importlib
import importlib.metadata
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEEL = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
PACKAGES = WHEEL["only-include"]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_lies_in_the_checkout(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__file__ is not None
    assert Path(module.__file__).resolve().parent == ROOT / package


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_distribution_owns_a_package_of_ours(package: str) -> None:
    owners = importlib.metadata.packages_distributions().get(package, [])
    assert set(owners) <= {"logberg"}


def test_the_distribution_is_installed_as_it_is_here() -> None:
    assert importlib.metadata.version("logberg") == PROJECT["project"]["version"]
    scripts = importlib.metadata.entry_points(group="console_scripts", name="logberg")
    assert {script.value for script in scripts} == {PROJECT["project"]["scripts"]["logberg"]}


def test_every_package_is_built_and_none_is_forgotten() -> None:
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert found - {"tests", "benchmarks", "releasing"} == set(PACKAGES)


def test_every_package_but_the_root_moves_below_it() -> None:
    assert WHEEL["sources"] == {name: f"logberg/{name}" for name in PACKAGES if name != "logberg"}


def test_a_package_of_another_owner_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "intruder-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: intruder\nVersion: 1.0\n")
    (info / "top_level.txt").write_text("metadata\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "intruder" in importlib.metadata.packages_distributions()["metadata"]
