"""Files that hold one secret, as text, for one user of the system.

Rule: such a file is never readable by others, not even for a moment, and is never overwritten.
"""

import os
import stat
from pathlib import Path
from secrets import token_bytes


class SecretFileError(Exception):
    """The file can't be read, written or used; the message says what to do."""


def read_secret(path: Path, size: int) -> bytes:
    """Return a secret of `size` bytes. Raises SecretFileError."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise SecretFileError(f"{path} can't be read ({why})") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SecretFileError(f"others than its user may open {path}; run: chmod 600 {path}")
    try:
        secret = bytes.fromhex(text)
    except ValueError:
        secret = b""
    if len(secret) != size:
        raise SecretFileError(f"{path} does not hold {2 * size} hexadecimal digits")
    return secret


def read_secret_text(path: Path) -> bytes:
    """Return a secret that another program chose: the first line as UTF-8. Raises SecretFileError.

    Spaces around it don't count.
    """
    try:
        mode = path.stat().st_mode
        lines = path.read_text(encoding="utf-8").strip().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise SecretFileError(f"{path} can't be read ({why})") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SecretFileError(f"others than its user may open {path}; run: chmod 600 {path}")
    if len(lines) != 1:
        raise SecretFileError(f"{path} must hold one line with the secret")
    return lines[0].strip().encode()


def write_new_secret(path: Path, size: int) -> bytes:
    """Draw a secret of `size` bytes, write it and return it. Raises SecretFileError."""
    secret = token_bytes(size)
    write_new_text(path, secret.hex())
    return secret


def write_new_text(path: Path, text: str) -> None:
    """Write a secret that is text. Raises SecretFileError if the file is there."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise SecretFileError(f"{path} is there already; choose another name") from None
    except OSError as error:
        raise SecretFileError(f"{path} can't be written ({error.strerror})") from None
