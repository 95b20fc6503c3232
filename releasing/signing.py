"""Signs a release, and checks one: a file of SHA-256 checksums, and OpenSSH's signature of it.

Rule: one signature covers all files, through their checksums. `ssh-keygen` makes it and checks it,
so whoever checks needs no code of ours, and the key may lie in an agent or on a token. The
signature counts for the namespace below only, so a signature of something else is never taken for
one of a release.
"""

import re
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Final

from releasing import ReleaseError

NAMESPACE: Final = "logberg-release"
SIGNER: Final = "logberg"
"""Stands before a key in `allowed_signers`."""
KEY_KIND: Final = "ssh-ed25519"
_LINE: Final = re.compile(r"([0-9a-f]{64})  ([\w.+-]+)")
_SECONDS: Final = 120


def write_checksums(folder: Path, name: str) -> Path:
    """Write the checksums of all files of a folder, as sha256sum does, and return the file."""
    files = sorted(file for file in folder.iterdir() if file.is_file())
    lines = [f"{sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    sums = folder / name
    sums.write_text("".join(lines))
    return sums


def sign(sums: Path, key: Path) -> Path:
    """Sign a file of checksums, and return the signature's file. Raises ReleaseError.

    `key`: a private key, or a public one whose private key an ssh-agent has. It must be Ed25519.
    """
    public = key if key.suffix == ".pub" else key.with_name(f"{key.name}.pub")
    if not public.is_file() or not public.read_text().startswith(f"{KEY_KIND} "):
        raise ReleaseError(
            f"{public} is no public key of kind {KEY_KIND}; make a pair with "
            f"`ssh-keygen -t ed25519 -f {key}`"
        )
    signature = sums.with_name(f"{sums.name}.sig")
    signature.unlink(missing_ok=True)
    _ssh_keygen(["-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(sums)])
    return signature


def check_key(key: Path, signers: Path) -> None:
    """Raise ReleaseError unless what this key signs would be accepted."""
    with tempfile.TemporaryDirectory(prefix="logberg-key-") as work:
        probe = Path(work) / "probe"
        probe.write_text("is this key one of the project's?\n")
        _check_signature(probe.read_bytes(), sign(probe, key), signers)


def verify(folder: Path, signers: Path) -> list[str]:
    """Check a release, and return the names of its files.

    `signers`: the keys that may sign, as OpenSSH's `allowed_signers`. Raises ReleaseError, OSError.
    """
    sums = _the_one(folder, "*.sha256")
    signature = sums.with_name(f"{sums.name}.sig")
    if not signature.is_file():
        raise ReleaseError(f"{sums} has no signature beside it: don't install this")
    content = sums.read_bytes()
    _check_signature(content, signature, signers)
    named = _checksums(content.decode(errors="replace"), sums)
    for name, digest in named.items():
        file = folder / name
        if not file.is_file():
            raise ReleaseError(f"{name} is missing from {folder}")
        if sha256(file.read_bytes()).hexdigest() != digest:
            raise ReleaseError(f"{name} is not the file that was signed: don't install it")
    there = {file.name for file in folder.iterdir()} - {sums.name, signature.name}
    if unknown := sorted(there - set(named)):
        raise ReleaseError(f"{folder} has files that nobody signed: {', '.join(unknown)}")
    return sorted(named)


def _check_signature(content: bytes, signature: Path, signers: Path) -> None:
    arguments = ["-Y", "verify", "-f", str(signers), "-I", SIGNER, "-n", NAMESPACE]
    _ssh_keygen([*arguments, "-s", str(signature)], content)


def _checksums(text: str, sums: Path) -> dict[str, str]:
    found = [_LINE.fullmatch(line) for line in text.splitlines()]
    named = {one[2]: one[1] for one in found if one is not None}
    if not named or len(named) != len(found):
        raise ReleaseError(f"{sums} is no list of checksums")
    return named


def _the_one(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise ReleaseError(f"{folder} has {len(found)} files {pattern}, not one")
    return found[0]


def _ssh_keygen(arguments: list[str], data: bytes | None = None) -> None:
    try:
        done = subprocess.run(
            ["ssh-keygen", *arguments],
            input=data,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    except FileNotFoundError:
        raise ReleaseError(
            "ssh-keygen is not here; on Debian: apt install openssh-client"
        ) from None
    except subprocess.TimeoutExpired:
        raise ReleaseError(f"ssh-keygen did not answer within {_SECONDS} s") from None
    if done.returncode != 0:
        said = (done.stderr + done.stdout).decode(errors="replace").strip()
        raise ReleaseError(f"ssh-keygen {arguments[1]} says no: {said[-500:]}")
