"""Files with tokens, for commands that make one."""

from pathlib import Path

from logberg.cli.failure import Failure


def no_first_file(file: Path, *, drawn: bool, request_id: str | None) -> None:
    """Raise Failure if a repeated request has not the file of the first one."""
    if drawn and request_id is not None:
        file.unlink()
        raise Failure(
            f"{file} is not there: a repeated request needs the file of the first one, because the "
            "token in it is the one that was sent"
        )
