"""Nothing is installed without a hash in this repository, and each package has its reason.

Makefile, image, CI, tests and docs are searched for calls of pip.
"""

import re
import subprocess
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from releasing.locks import read_lock
from tests.packaging.alien import PROJECT, ROOT

CALL = re.compile(
    r"\bpip3?(?:\"|'|,|\s)+(?:[\w/$(){}.\"',-]+(?:\s|,)+)*?(?:\"|')?(?:install|wheel|download)\b"
)
EXTRA = re.compile(r"pip install '?logberg\[[a-z]+\]'?")
"""A sentence that names an extra. docs/releasing.md says how it is installed with hashes."""
OWN = re.compile(r"pip install -e \.")
"""A sentence about an editable install of this checkout."""
OPT_IN = {
    "tests/audit_sql/test_delta_spark.py": "an older Spark, which pip builds, beside ours",
    "tests/coordination/tooz/test_their_suite.py": "what OpenStack's own suite imports",
}
"""Tests that nobody runs without asking, which install pinned versions without hashes."""
NO_INDEX = re.compile(r"--no-index|--no-deps")
ADRS = ROOT / "docs" / "adr"


def calls() -> list[tuple[str, str]]:
    """Every call of pip in the repository, with the lines around it."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = []
    for name in listed:
        file = ROOT / name
        if not file.is_file() or file == Path(__file__) or file.suffix in {".lock", ".bin"}:
            continue
        if file.parent == ADRS:
            continue  # they say why, and are no instructions
        if file.suffix not in {"", ".py", ".sh", ".md", ".yml", ".yaml", ".toml", ".mk"}:
            continue
        lines = file.read_text(errors="replace").replace("\\\n", " ").splitlines()
        for at, line in enumerate(lines):
            around = " ".join(lines[at : at + 4])
            if (CALL.search(line) or '"pip", "install"' in line) and "could not" not in line:
                found.append((f"{name}: {line.strip()}", around))
    return found


def test_every_install_checks_hashes_or_asks_no_index() -> None:
    found = calls()
    assert len(found) > 8
    bad = [
        line
        for line, around in found
        if "--require-hashes" not in around
        and not NO_INDEX.search(around)
        and not EXTRA.search(line)
        and not OWN.search(line)
        and line.partition(":")[0] not in OPT_IN
    ]
    assert bad == []


def test_the_makefile_has_one_way_to_install() -> None:
    makefile = (ROOT / "Makefile").read_text()
    asked = re.findall(r"\$\((?:INSTALL|PIP)\)[^\n]*", makefile)
    assert len(asked) > 4
    for line in asked:
        locked = line.startswith("$(INSTALL)") and re.search(r"-r requirements/\w+\.lock", line)
        ours = "--no-deps --no-build-isolation --editable ." in line
        assert locked or ours or line.startswith("$(PIP) install --require-hashes"), line


def test_the_image_takes_locked_packages() -> None:
    script = (ROOT / "deploy" / "container" / "build.sh").read_text().replace("\\\n", " ")
    asked = [line for line in script.splitlines() if "-m pip" in line]
    assert len(asked) == 3
    assert "--require-hashes" in asked[0]
    assert "requirements/run.lock" in asked[0]
    assert all("--no-deps" in line for line in asked[1:])


def reasons(page: str) -> dict[str, str]:
    """Packages with their reasons, from the tables of an ADR whose first column names them."""
    found: dict[str, str] = {}
    for row in re.findall(r"^\| ([^|]+) \| (.+) \|$", (ADRS / page).read_text(), re.MULTILINE):
        first = ""
        for name in re.findall(r"-?[A-Za-z][\w.-]*", re.sub(r"\([^)]*\)|==\S+|below", "", row[0])):
            # "opentelemetry-api, -sdk" names two packages.
            whole = first.partition("-")[0] + name if name.startswith("-") else name
            first = first or name
            found[canonicalize_name(whole)] = row[1]
    found.pop("package", None)
    return found


@pytest.mark.parametrize("kind", ["run", "optional", "release"])
def test_each_dependency_has_its_reason(kind: str) -> None:
    project = PROJECT["project"]
    asked = {
        "run": project["dependencies"],
        "optional": [one for extra in project["optional-dependencies"].values() for one in extra],
        "release": [
            *PROJECT["dependency-groups"]["release"],
            *PROJECT["dependency-groups"]["fuzz"],
            *PROJECT["dependency-groups"]["build"],
        ],
    }[kind]
    told = reasons("0009-dependencies.md") | reasons("0091-supply-chain.md")
    names = {canonicalize_name(Requirement(one).name) for one in asked}
    assert sorted(names - set(told)) == []


def test_what_these_bring_with_them_has_its_reason_too() -> None:
    told = reasons("0009-dependencies.md") | reasons("0091-supply-chain.md")
    locked = {one.name for one in read_lock(ROOT / "requirements" / "run.lock")}
    assert sorted(locked - set(told)) == []
    gone = set(reasons("0091-supply-chain.md")) - {
        one.name
        for lock in ("dev", "fuzz", "build")
        for one in read_lock(ROOT / "requirements" / f"{lock}.lock")
    }
    assert gone == set()
