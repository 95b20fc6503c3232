"""The lock files list what pyproject.toml asks for, each package with its hashes.

Rule: `make lock` writes `requirements/*.lock`; nobody edits them. A package has one version in all
of them, so that tests run on what users get. Two stand apart: they hold what `make fuzz` and the
tests of Kafka's client libraries install in addition.
"""

import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = ("build", "run", "extras", "kafka-clients", "fuzz", "dev")
PYTHONS = [
    found.rpartition(" ")[2]
    for found in PROJECT["project"]["classifiers"]
    if found.startswith("Programming Language :: Python :: 3.")
]


class Locked(NamedTuple):
    requirement: Requirement
    hashes: list[str]

    def version(self) -> Version:
        (pin,) = self.requirement.specifier
        assert pin.operator == "==", f"{self.requirement} is not pinned"
        return Version(pin.version)


def read(name: str) -> list[Locked]:
    """The entries of one lock file, in its order."""
    text = (ROOT / "requirements" / f"{name}.lock").read_text().replace("\\\n", " ")
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            first, *hashes = line.split("--hash=")
            found.append(Locked(Requirement(first.strip()), [one.strip() for one in hashes]))
    return found


def on(python: str, entries: list[Locked]) -> dict[str, Version]:
    """Versions by name that pip installs on Linux with this Python."""
    world = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
    }
    found: dict[str, Version] = {}
    for entry in entries:
        marker = entry.requirement.marker
        if marker is None or marker.evaluate(world):
            name = canonicalize_name(entry.requirement.name)
            assert name not in found, f"two versions of {name} on Python {python}"
            found[name] = entry.version()
    return found


def group(name: str) -> list[str]:
    """The requirements of a dependency group and of the groups that it includes."""
    found: list[str] = []
    for item in PROJECT["dependency-groups"][name]:
        found += [item] if isinstance(item, str) else group(item["include-group"])
    return found


EXTRAS = [one for extra in PROJECT["project"]["optional-dependencies"].values() for one in extra]
ASKED = {
    "build": PROJECT["build-system"]["requires"] + group("build"),
    "run": PROJECT["project"]["dependencies"],
    "extras": [*PROJECT["project"]["dependencies"], *EXTRAS],
    "kafka-clients": group("kafka-clients"),
    "fuzz": group("fuzz"),
    "dev": [*PROJECT["project"]["dependencies"], *EXTRAS, *group("dev")],
}


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_holds_what_pyproject_asks_for(name: str, python: str) -> None:
    locked = on(python, read(name))
    for asked in map(Requirement, ASKED[name]):
        version = locked.get(canonicalize_name(asked.name))
        assert version is not None, f"{asked} is not in {name}.lock: run make lock"
        assert asked.specifier.contains(version), f"{name}.lock has {version} for {asked}"


@pytest.mark.parametrize("python", PYTHONS)
def test_a_package_has_one_version_in_all_locks(python: str) -> None:
    dev = on(python, read("dev"))
    for name in ("build", "run", "extras"):
        assert on(python, read(name)).items() <= dev.items()


def test_every_lock_file_is_known_here() -> None:
    assert {file.stem for file in (ROOT / "requirements").glob("*.lock")} == set(LOCKS)


@pytest.mark.parametrize("name", LOCKS)
def test_each_entry_has_a_hash_and_no_address(name: str) -> None:
    entries = read(name)
    assert entries
    for entry in entries:
        assert entry.hashes, f"{entry.requirement.name} has no hash"
        assert all(one.startswith("sha256:") and len(one) == 71 for one in entry.hashes)
        assert entry.requirement.url is None
    assert "://" not in (ROOT / "requirements" / f"{name}.lock").read_text()


def test_the_classifiers_name_every_python_that_is_supported() -> None:
    supported = SpecifierSet(PROJECT["project"]["requires-python"])
    assert PYTHONS
    assert all(supported.contains(f"{python}.0") for python in PYTHONS)
