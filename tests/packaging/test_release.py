"""A release: the same bytes from every build, and a signature that OpenSSH alone can check.

A copy of this checkout is committed into a repository of its own, and released there with keys that
the test makes.
"""

import re
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from releasing import ReleaseError, building
from releasing.__main__ import main
from releasing.building import Surroundings, build_wheel, changed_files, commit_of, compare
from releasing.making import make_release
from releasing.signing import SIGNER, sign, verify, write_checksums
from tests import debian
from tests.packaging.alien import PROJECT, ROOT

VERSION = PROJECT["project"]["version"]
NAME = f"logberg-{VERSION}"
GIT = ["git", "-c", "user.name=a test", "-c", "user.email=test@example.invalid"]
PAGE = ROOT / "docs" / "releasing.md"


def run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [str(one) for one in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout with its changes, as one commit of another repository."""
    folder = tmp_path_factory.mktemp("repository") / "checkout"
    folder.mkdir()
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in listed.splitlines():
        if (ROOT / name).is_file() and not name.startswith(("tests/", "benchmarks/", "docs/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    run("git", "init", "--quiet", cwd=folder)
    run("git", "add", "--all", cwd=folder)
    run(*GIT, "commit", "--quiet", "--message", "all", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs of keys, of which `allowed_signers` knows the first."""
    debian.install("openssh-client", is_there=lambda: shutil.which("ssh-keygen") is not None)
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ours", "theirs"):
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name)
    public = (folder / "ours.pub").read_text()
    (folder / "allowed_signers").write_text(f'{SIGNER} namespaces="logberg-release" {public}')
    return folder


@pytest.fixture(scope="module")
def release(repository: Path, keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    said: list[str] = []
    made = make_release(repository, keys / "ours", keys / "allowed_signers", out, said.append)
    assert said
    assert list(out.iterdir()) == [made]
    return made


@pytest.fixture
def copied(release: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(release, tmp_path / NAME))


def test_a_release_holds_what_an_installation_needs(release: Path) -> None:
    assert {file.name for file in release.iterdir()} == {
        f"{NAME}-py3-none-any.whl",
        f"{NAME}.cdx.json",
        f"{NAME}.lock",
        f"{NAME}-extras.lock",
        f"{NAME}-build.lock",
        f"{NAME}.sha256",
        f"{NAME}.sha256.sig",
    }
    assert "ssh" not in run("git", "ls-files", cwd=ROOT / "releasing")


def test_a_third_build_elsewhere_has_the_same_bytes(
    release: Path, repository: Path, tmp_path: Path
) -> None:
    """Of another clone, whose files have other times, and which holds more than the commit."""
    clone = tmp_path / "a clone"
    run("git", "clone", "--quiet", repository, clone)
    (clone / "logberg" / "junk.py").write_text("not in the commit")
    place = Surroundings("a third place", 0o027, {"TZ": "America/Lima", "PYTHONHASHSEED": "3"})
    wheel = building._build(clone, commit_of(clone), tmp_path, place)
    assert wheel.read_bytes() == (release / wheel.name).read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
    assert len({entry.date_time for entry in entries}) == 1
    assert {entry.external_attr >> 16 & 0o777 for entry in entries} <= {0o644, 0o755, 0o664}


def test_the_command_says_what_it_built(
    release: Path, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    (wheel,) = release.glob("*.whl")
    clone = tmp_path / "clone"
    run("git", "clone", "--quiet", repository, clone)
    (clone / "junk.py").write_text("not in the commit")
    monkeypatch.setattr("releasing.__main__.build_wheel", lambda *_: wheel)
    assert main(["--repository", str(clone), "wheel", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "have equal bytes" in said
    assert "without them" in said
    assert sha256(wheel.read_bytes()).hexdigest() in said


def test_builds_that_differ_are_refused_and_the_entry_is_named(
    release: Path, tmp_path: Path
) -> None:
    wheel = release / f"{NAME}-py3-none-any.whl"
    other = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(other, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            changed = entry.filename.endswith("logberg/version.py")
            new.writestr(entry, data + b"# today" if changed else data)
    with pytest.raises(ReleaseError, match=r"differ: the content of logberg/version\.py"):
        compare(wheel, other)


def test_a_build_that_fails_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "pyproject.toml").write_text("[project]\nname = 5\n")
    run("git", "init", "--quiet", cwd=broken)
    run("git", "add", "--all", cwd=broken)
    run(*GIT, "commit", "--quiet", "--message", "broken", cwd=broken)
    with pytest.raises(ReleaseError, match=r"(?s)hatchling build.* failed:\nTraceback"):
        build_wheel(broken, commit_of(broken), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_changed_work_tree_is_not_released(repository: Path, keys: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    run("git", "clone", "--quiet", repository, clone)
    (clone / "README.md").write_text("changed")
    assert changed_files(clone) == [" M README.md"]
    with pytest.raises(ReleaseError, match=r"differs from the commit.*README"):
        make_release(clone, keys / "ours", keys / "allowed_signers", tmp_path / "out", print)


def test_a_release_is_right_as_it_was_made(release: Path, keys: Path) -> None:
    names = verify(release, keys / "allowed_signers")
    assert len(names) == 5
    assert f"{NAME}-py3-none-any.whl" in names


@pytest.mark.parametrize(
    "ending",
    [
        *("-py3-none-any.whl", ".cdx.json", ".lock", "-extras.lock", "-build.lock"),
        *(".sha256", ".sha256.sig"),
    ],
)
def test_a_flipped_bit_of_any_file_is_refused(copied: Path, keys: Path, ending: str) -> None:
    file = copied / f"{NAME}{ending}"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(ReleaseError):
        verify(copied, keys / "allowed_signers")
    assert by_hand(copied, keys / "allowed_signers") != 0


def test_what_is_missing_added_or_unsigned_is_refused(copied: Path, keys: Path) -> None:
    signers = keys / "allowed_signers"
    (copied / "extra.whl").write_bytes(b"")
    with pytest.raises(ReleaseError, match=r"nobody signed: extra\.whl"):
        verify(copied, signers)
    (copied / "extra.whl").unlink()
    bill = (copied / f"{NAME}.cdx.json").rename(copied.parent / "bill")
    with pytest.raises(ReleaseError, match=r"cdx\.json is missing"):
        verify(copied, signers)
    bill.rename(copied / f"{NAME}.cdx.json")
    (copied / f"{NAME}.sha256.sig").unlink()
    with pytest.raises(ReleaseError, match="no signature"):
        verify(copied, signers)


def test_another_key_signs_nothing_that_counts(copied: Path, keys: Path) -> None:
    """Somebody replaces the wheel, and signs anew with a key of their own."""
    (copied / f"{NAME}-py3-none-any.whl").write_bytes(b"another one")
    for file in copied.glob("*.sha256*"):
        file.unlink()
    sign(write_checksums(copied, f"{NAME}.sha256"), keys / "theirs")
    with pytest.raises(ReleaseError, match="ssh-keygen verify says no"):
        verify(copied, keys / "allowed_signers")


def test_a_signature_for_another_purpose_does_not_count(copied: Path, keys: Path) -> None:
    sums = copied / f"{NAME}.sha256"
    (copied / f"{NAME}.sha256.sig").unlink()
    run("ssh-keygen", "-q", "-Y", "sign", "-f", keys / "ours", "-n", "git", sums)
    with pytest.raises(ReleaseError, match="ssh-keygen verify says no"):
        verify(copied, keys / "allowed_signers")


def test_a_key_of_another_kind_and_no_key_are_refused(copied: Path, tmp_path: Path) -> None:
    key = tmp_path / "ecdsa"
    run("ssh-keygen", "-q", "-t", "ecdsa", "-N", "", "-f", key)
    for one in (key, tmp_path / "nothing"):
        with pytest.raises(ReleaseError, match="no public key of kind ssh-ed25519"):
            sign(copied / f"{NAME}.sha256", one)


def test_a_key_that_may_not_sign_makes_no_release(
    repository: Path, keys: Path, tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError, match="ssh-keygen verify says no"):
        make_release(repository, keys / "theirs", keys / "allowed_signers", tmp_path, print)
    assert list(tmp_path.iterdir()) == []


def by_hand(folder: Path, signers: Path) -> int:
    """Run the commands of docs/releasing.md, and return the exit code."""
    found = re.search(r"<!-- check by hand -->\n```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    script = found[1].replace("0.2.0", VERSION)
    shutil.copyfile(signers, folder / "allowed_signers")
    done = subprocess.run(["sh", "-eu", "-c", script], cwd=folder, capture_output=True, check=False)
    (folder / "allowed_signers").unlink()
    return done.returncode


def test_the_commands_of_the_page_accept_it(copied: Path, keys: Path) -> None:
    assert by_hand(copied, keys / "allowed_signers") == 0


def test_pip_takes_the_signed_wheel_and_no_other(copied: Path, tmp_path: Path) -> None:
    lock = tmp_path / "ours.lock"
    whole = (copied / f"{NAME}.lock").read_text()
    lock.write_text(whole[whole.index("logberg==") :])
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--require-hashes", "--find-links", str(copied), "-r", str(lock), "--target"]
    done = subprocess.run([*command, tmp_path / "one"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "one" / "logberg" / "version.py").is_file()
    wheel = copied / f"{NAME}-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    done = subprocess.run([*command, tmp_path / "two"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr


def test_no_private_key_is_in_the_repository() -> None:
    # Written so that this file does not hold the words itself.
    words = "PRIVATE " + "KEY-----"
    listed = ["git", "grep", "--files-with-matches", "--fixed-strings", words]
    found = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False)
    whole = re.compile(words + r"\s+(?:[A-Za-z0-9+/=]{60,}\s+)+")
    named = [ROOT / name for name in found.stdout.splitlines()]
    assert [file for file in named if whole.search(file.read_text())] == []
    assert whole.search(f"-----BEGIN {words}\n{'A' * 64}\n{'B' * 64}\n")
