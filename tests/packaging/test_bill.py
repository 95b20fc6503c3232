"""The bill of materials says what a wheel needs, with the hashes that an installation checks."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from releasing import ReleaseError
from releasing.bill import check_bill, make_bill
from releasing.building import SourceCommit
from releasing.locks import LockedPackage, read_lock
from tests.packaging.alien import PROJECT, ROOT

LOCKED = read_lock(ROOT / "requirements" / "run.lock")
NEEDED = PROJECT["project"]["dependencies"]
COMMIT = SourceCommit("5" * 40, 1_700_000_000)
WHEEL = f"logberg-{PROJECT['project']['version']}-py3-none-any.whl"


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("wheel") / WHEEL
    file.write_bytes(b"a wheel")
    return file


@pytest.fixture(scope="module")
def text(wheel_file: Path) -> str:
    return make_bill(wheel_file, COMMIT, LOCKED, NEEDED)


@pytest.fixture(scope="module")
def bill(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def test_it_names_every_locked_package_and_every_hash(bill: dict[str, Any]) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    named = {
        (one["name"], one["version"]): {
            item["content"]
            for reference in one["externalReferences"]
            for item in reference["hashes"]
            if item["alg"] == "SHA-256"
        }
        for one in bill["components"]
    }
    assert named == {(one.name, one.version): set(one.hashes) for one in LOCKED}
    assert all(
        one["purl"] == f"pkg:pypi/{one['name']}@{one['version']}" for one in bill["components"]
    )


def test_it_names_the_wheel_its_hash_and_its_commit(bill: dict[str, Any], wheel_file: Path) -> None:
    ours = bill["metadata"]["component"]
    assert ours["hashes"] == [
        {"alg": "SHA-256", "content": sha256(wheel_file.read_bytes()).hexdigest()}
    ]
    assert ours["properties"] == [{"name": "logberg:commit", "value": COMMIT.id}]
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"


def test_every_package_is_needed_by_another(bill: dict[str, Any]) -> None:
    needs = {one["ref"]: one.get("dependsOn", []) for one in bill["dependencies"]}
    reached, waiting = set(), [bill["metadata"]["component"]["bom-ref"]]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += needs[one]
    assert {one["bom-ref"] for one in bill["components"]} <= reached
    assert any(one.startswith("yarl@") for one in needs[_ref(bill, "aiohttp")])


def _ref(bill: dict[str, Any], name: str) -> str:
    return str(next(one["bom-ref"] for one in bill["components"] if one["name"] == name))


def test_the_same_wheel_has_the_same_bill(text: str, wheel_file: Path) -> None:
    assert make_bill(wheel_file, COMMIT, list(reversed(LOCKED)), NEEDED) == text
    assert '"url": "http' not in text.replace("http://cyclonedx.org", "")


def test_a_bill_that_the_schema_does_not_allow_is_refused(bill: dict[str, Any]) -> None:
    for change in ({"bomFormat": "other"}, {"components": [{"name": "x"}]}, {"more": 1}):
        with pytest.raises(ReleaseError, match="not valid"):
            check_bill(json.dumps(bill | change))


def test_a_lock_that_lacks_a_package_or_has_another_version_is_refused(wheel_file: Path) -> None:
    with pytest.raises(ReleaseError, match="lacks aiohttp"):
        make_bill(wheel_file, COMMIT, [one for one in LOCKED if one.name != "aiohttp"], NEEDED)
    other = [one._replace(version="0.0.1") if one.name == "click" else one for one in LOCKED]
    with pytest.raises(ReleaseError, match=r"click \S+ is installed.*0\.0\.1"):
        make_bill(wheel_file, COMMIT, other, NEEDED)


@pytest.mark.parametrize(
    ("line", "why"), [("click==8.5.1\n", "no hash"), ("click>=8 --hash=sha256:00\n", "not pinned")]
)
def test_a_lock_that_is_none_is_refused(tmp_path: Path, line: str, why: str) -> None:
    (tmp_path / "a.lock").write_text(line)
    with pytest.raises(ReleaseError, match=why):
        read_lock(tmp_path / "a.lock")


def test_a_lock_is_read_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "a.lock").write_text(
        "# by uv\nA_b==1.0 ; python_full_version < '3.12' \\\n    --hash=sha256:aa \\\n"
        "    --hash=sha256:bb\n"
    )
    (found,) = read_lock(tmp_path / "a.lock")
    assert found == LockedPackage("a-b", "1.0", 'python_full_version < "3.12"', ("aa", "bb"))
