"""`logberg apply`."""

import sys
from pathlib import Path

import click
import msgspec

from logberg.cli.connection_options import ChangeOptions, ClusterConnection, change_options
from logberg.cli.failure import Failure
from logberg.cli.output import print_json, say
from logberg.client.request_ids import new_request_id
from logberg.declared.declaration import read_declaration
from logberg.declared.options import declaration_options
from logberg.declared.passwords import with_passwords
from logberg.declared.showing import fail_for_refused, show_plan


@click.command("apply")
@declaration_options
@click.option("--yes", is_flag=True, help="Apply the plan without asking.")
@change_options
def command(
    *,
    files: tuple[Path, ...],
    prune: bool,
    delete_topics: bool,
    rewrite_passwords: bool,
    yes: bool,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Make topics, configs, quotas, ACLs and users as files declare them.

    The command shows the plan and asks. Then the whole plan is one change: all of it is made, or
    nothing. What the files don't name stays as it is, unless --prune is given.
    """
    declared = read_declaration(files)
    request = declared.request(prune=prune, delete_topics=delete_topics, rewrite=rewrite_passwords)
    same = msgspec.structs.replace(change, request_id=change.request_id or new_request_id())
    shown = msgspec.structs.replace(same, dry_run=True)
    plan = cluster.ask(lambda client: client.apply(request, **shown.arguments()))
    if output != "json":
        show_plan(plan)
    differs = bool(plan.created or plan.changed or plan.removed)
    if change.dry_run or plan.refused or not differs:
        if output == "json":
            print_json(plan)
        fail_for_refused(plan.items, declared.places)
        return
    if not yes and (output == "json" or not sys.stdin.isatty()):
        raise Failure("nobody can be asked here: look at the plan with --dry-run, then give --yes")
    confirmed = msgspec.structs.replace(
        with_passwords(request, declared.sources, plan.items, str(same.request_id)),
        expected_plan=plan.plan,
    )
    if not yes and not click.confirm("apply this plan?", err=True):
        raise Failure("nothing is applied")
    done = cluster.ask(lambda client: client.apply(confirmed, **same.arguments()))
    if output == "json":
        print_json(done)
    fail_for_refused(done.items, declared.places)
    if output != "json":
        say(
            f"applied: {done.created} created, {done.changed} changed, {done.removed} removed "
            f"(offset {done.offset})"
        )
