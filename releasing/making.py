"""Makes a release: wheel, bill of materials, lock files for its installation, checksums, signature.

Rule: a release appears whole or not at all. It is made in a folder beside, checked there as a user
would check it, and renamed.
"""

import shutil
import tempfile
import tomllib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

from releasing import ReleaseError
from releasing.bill import make_bill
from releasing.building import build_wheel, changed_files, commit_of, unpack
from releasing.locks import read_lock
from releasing.signing import check_key, sign, verify, write_checksums

_ITSELF: Final = {"run": "", "extras": "-extras"}
"""Lock files that a release repeats with the wheel as one more entry, and what their names get."""


def make_release(
    repository: Path, key: Path, signers: Path, out: Path, say: Callable[[str], None]
) -> Path:
    """Make and sign the release of the repository's commit; return its folder.

    Raises ReleaseError, OSError.
    """
    if changed := changed_files(repository):
        raise ReleaseError(f"the work tree differs from the commit: {', '.join(changed[:5])}")
    commit = commit_of(repository)
    check_key(key, signers)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".release-", dir=out) as work:
        source, made = Path(work) / "source", Path(work) / "made"
        unpack(repository, commit, source)
        project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
        name = f"{project['name']}-{project['version']}"
        target = out / name
        if target.exists():
            raise ReleaseError(f"{target} is there already")
        say(f"building {name} of commit {commit.id[:12]} twice")
        wheel = build_wheel(repository, commit, made)
        say("bill of materials")
        locked = read_lock(source / "requirements" / "run.lock")
        bill = make_bill(wheel, commit, locked, project["dependencies"])
        (made / f"{name}.cdx.json").write_text(bill)
        _write_locks(source / "requirements", wheel, name, project, made)
        say("signing")
        sign(write_checksums(made, f"{name}.sha256"), key)
        verify(made, signers)
        made.rename(target)
    return target


def _write_locks(
    requirements: Path, wheel: Path, name: str, project: dict[str, object], made: Path
) -> None:
    """Write what an installation needs: what builds PySyncObj, and the wheel with its packages."""
    shutil.copyfile(requirements / "build.lock", made / f"{name}-build.lock")
    digest = sha256(wheel.read_bytes()).hexdigest()
    ours = f"{project['name']}=={project['version']} \\\n    --hash=sha256:{digest}\n"
    for lock, ending in _ITSELF.items():
        text = (requirements / f"{lock}.lock").read_text()
        (made / f"{name}{ending}.lock").write_text(text + ours)
