"""The one exception that ends a command with exit code 1."""

from collections.abc import Iterable, Sequence

import click

from metadata.errors import Fault
from metadata.messages.errors import ErrorReply


class Failure(click.ClickException):
    """Something could not be done; the message says why and what to do."""

    def __init__(
        self, message: str, reply: ErrorReply | None = None, more: Sequence[str] = ()
    ) -> None:
        """`reply`: the same for programs; without one it is made of the message.

        `more`: further lines, such as the last ones of a process that ended.
        """
        super().__init__(message)
        self.lines = (message, *more)
        self.reply = reply or ErrorReply("NOT_DONE", message, whose_fault=Fault.CLIENT.value)


def fail_for(answers: Iterable[tuple[str, ErrorReply | None]]) -> None:
    """Raise Failure with every reason, if something was refused: (what it was, its error)."""
    refused = [
        f"{what}{': ' if what else ''}{error.message} [{error.code}]"
        for what, error in answers
        if error is not None
    ]
    if refused:
        raise Failure("; ".join(refused))
