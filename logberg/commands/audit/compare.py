"""`logberg audit compare`: whether several controllers have one history."""

import click

from audit.places.replicas import open_all
from audit.questions.agreement import agree
from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, show, table
from logberg.cli.progress import progress_of_steps
from logberg.commands.audit.divergence_output import comparison_json, show_divergences
from logberg.commands.audit.failures import failing


@click.command("compare")
@click.argument("where", nargs=-1, required=True)
@output_option
def command(where: tuple[str, ...], output: str) -> None:
    """Compare several logs; show the first offset at which one differs.

    A damaged log is compared up to its damage. Exit 1 if a log differs or is damaged.
    """
    with failing():
        replicas = open_all(where)
        if len(replicas) < 2:
            raise click.UsageError(f"{where[0]} is one log. Name two or more.")
        with progress_of_steps("verifying") as on_step:
            found = agree(replicas, on_step)
    compared = found.comparison
    reports = {one.replica.name: one.report for one in found.logs}
    problems = {name: str(bad) for name, report in reports.items() if (bad := report.first_bad)}
    if output == "json":
        print_json({**comparison_json(compared), "damaged": problems})
    else:
        rows = [
            (name, report.log_end, report.head.hex(), problems.get(name, ""))
            for name, report in reports.items()
        ]
        show(table(["log", "read up to", "head", "damage"], rows))
        show_divergences(compared)
    if compared.divergences:
        raise Failure(compared.problem)
    for name, problem in (problems | compared.left_out).items():
        raise Failure(f"{name}: {problem}")
