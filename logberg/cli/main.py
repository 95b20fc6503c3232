"""From the command line's arguments to an exit code.

Rule: results on stdout, everything else on stderr. Every expected failure is one sentence on
stderr, or with `--output json` one JSON document with the fields of an ErrorReply; exit 1 for what
was not done, 2 for wrong usage (`diff`: 1 for a difference, 2 for every failure). If the reader of
the output has closed it (`| head`), the command ends quietly, with exit code 0.
"""

import errno
import os
import re
import sys

import click
import msgspec
from click.shell_completion import shell_complete

from logberg.cli.command_tree import cli
from logberg.cli.completion_names import PROGRAM, VARIABLE
from logberg.cli.failure import Failure
from logberg.cli.for_programs import wants_json
from logberg.cli.old_variables import note_old_variables, take_old_variables
from metadata.errors import Fault
from metadata.messages.errors import ErrorReply

__all__ = ["cli", "main"]

_UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def main() -> None:
    """Run the command line, and exit."""
    arguments = sys.argv[1:]
    if instruction := os.environ.get(VARIABLE):
        sys.exit(shell_complete(cli, {}, PROGRAM, VARIABLE, instruction))
    note_old_variables(take_old_variables(os.environ))
    try:
        with cli.make_context(PROGRAM, list(arguments)) as context:
            cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as leaving:
        sys.exit(leaving.exit_code)
    except click.UsageError as error:
        _tell_usage(error, as_json=wants_json(arguments))
        sys.exit(2)
    except click.ClickException as error:
        _tell(error, as_json=wants_json(arguments))
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.exceptions.Abort):
        sys.exit(130)
    except BrokenPipeError:
        # Python flushes stdout once more at its end: that must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _tell(Failure(f"the output can't be written: {error}"), as_json=False)
        sys.exit(1)


def _tell(error: click.ClickException, *, as_json: bool) -> None:
    # Imported here: a controller that starts pays for no tables.
    from logberg.cli.output import print_line, say  # noqa: PLC0415

    lines = error.lines if isinstance(error, Failure) else (error.format_message(),)
    if as_json:
        reply = error.reply if isinstance(error, Failure) else _reply("NOT_DONE", lines[0])
        print_line(msgspec.to_builtins(reply), err=True)
        return
    for at, line in enumerate(lines):
        say(line if at else f"{PROGRAM}: {line}", err=True)


def _tell_usage(error: click.UsageError, *, as_json: bool) -> None:
    from logberg.cli.output import print_line, say  # noqa: PLC0415 - as above

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    # click writes a list of choices over several lines.
    message = re.sub(r"\s*[\r\n]\s*", " ", error.format_message())
    if as_json:
        print_line(msgspec.to_builtins(_reply("WRONG_USAGE", message)), err=True)
        return
    if error.ctx is not None:
        click.echo(error.ctx.get_usage(), err=True)
        click.echo(f"Try '{error.ctx.command_path} --help' for help.\n", err=True)
    say(f"Error: {message}", err=True)


def _reply(code: str, message: str) -> ErrorReply:
    return ErrorReply(code, message, whose_fault=Fault.CLIENT.value)
