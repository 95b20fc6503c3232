"""`logberg diff`."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.failure import Failure
from logberg.cli.output import note, print_json
from logberg.declared.declaration import read_declaration
from logberg.declared.options import declaration_options
from logberg.declared.showing import refusals, show_plan

_DRIFT, _ERROR = 1, 2


class DiffFailure(Failure):
    """A failure, with an exit code that no difference has."""

    exit_code = _ERROR


def _errors_are_2(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a failed command end with another exit code than one that found a difference."""

    @wraps(command)
    def telling_apart(**options: Any) -> Any:
        try:
            return command(**options)
        except Failure as error:
            raise DiffFailure(error.lines[0], error.reply, error.lines[1:]) from None

    return telling_apart


@click.command("diff")
@_errors_are_2
@declaration_options
@cluster_options
def command(
    *,
    files: tuple[Path, ...],
    prune: bool,
    delete_topics: bool,
    rewrite_passwords: bool,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Show how the cluster differs from what files declare.

    The exit code is 0 if nothing differs, 1 if something does (also if an apply can't change it),
    2 if that can't be said.
    """
    declared = read_declaration(files)
    request = declared.request(prune=prune, delete_topics=delete_topics, rewrite=rewrite_passwords)
    plan = cluster.ask(lambda client: client.apply(request, dry_run=True))
    if output == "json":
        print_json(plan)
    else:
        show_plan(plan)
    invalid = refusals((item for item in plan.items if item.action == "none"), declared.places)
    if invalid:
        raise Failure(invalid[0], more=invalid[1:])
    if output != "json":
        for line in refusals(plan.items, declared.places):
            note(f"an apply would be refused: {line}")
    if plan.items:
        raise click.exceptions.Exit(_DRIFT)
