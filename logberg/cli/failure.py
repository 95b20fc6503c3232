"""The one exception that ends a command with exit code 1."""

from collections.abc import Sequence

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
