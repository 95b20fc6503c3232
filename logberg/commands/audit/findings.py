"""`logberg audit findings`: what somebody should look at, the worst first."""

from pathlib import Path
from typing import Any

import click

from audit.findings.finding import Finding
from audit.findings.log_findings import of_log
from audit.findings.rules import RuleSet, Severity
from audit.places.replicas import one_replica
from audit.questions.search import last_offset, since_ms
from audit.reading.feed import Question
from audit.reading.opening import OpenedHeads
from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, say
from logberg.cli.progress import progress
from logberg.commands.audit.failures import (
    fail_for,
    failing,
    keep_going_option,
    print_notes,
    where_argument,
)
from logberg.commands.audit.finding_output import named_finding, print_finding, print_findings
from logberg.commands.audit.finding_sinks import SinkOptions, sink_options
from logberg.commands.audit.findings_followed import FollowOptions, follow
from logberg.commands.audit.opening_option import cluster_key_option, not_judged, opener_of
from logberg.commands.audit.rules_option import rules_of, rules_option
from logberg.commands.audit.search_options import moment_options
from metadata.person_opener import PersonOpener

_FOUND = 3
"""Exit code with --fail-on."""
_SEVERITIES = [each.word for each in reversed(Severity)]


@click.command("findings")
@where_argument
@moment_options
@click.option(
    "--severity",
    type=click.Choice(_SEVERITIES),
    default=Severity.LOW.word,
    show_default=True,
    help="Show only findings that are at least so severe.",
)
@rules_option
@click.option("--id", "wanted_id", help="Show one finding in full, with its records.")
@click.option(
    "--fail-on",
    type=click.Choice(_SEVERITIES),
    help=f"Exit with code {_FOUND} if a finding is shown that is at least so severe.",
)
@click.option("--follow", "follows", is_flag=True, help="Go on, and print findings as they come.")
@click.option(
    "--until-offset",
    type=click.IntRange(min=0),
    help="With --follow: stop when the log reaches this offset.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.05),
    default=1.0,
    show_default=True,
    help="With --follow: seconds between two reads of the log.",
)
@sink_options
@cluster_key_option
@keep_going_option
@output_option
def command(
    where: str,
    from_: str | None,
    to: str | None,
    severity: str,
    rules_file: Path | None,
    wanted_id: str | None,
    fail_on: str | None,
    follows: bool,
    until_offset: int | None,
    interval: float,
    cluster_key: Path | None,
    keep_going: bool,
    output: str,
    **sinks: Any,
) -> None:
    """Show what somebody should look at, the worst first, with who, from where and why.

    A finding gathers what belongs together, such as all changes of one stolen token. The log is
    judged from its beginning, because what is unusual depends on what was usual; --from and --to
    choose which findings are shown. docs/audit/findings.md explains every rule.

    With --follow each finding is shown when it opens, and again when it has gathered more. Sinks
    get it at least once; its id tells doubles.

    Exit codes: 0, 1 if the log can't be read, 2 for a wrong option, 3 as --fail-on says.
    """
    rules = rules_of(rules_file)
    options = SinkOptions(**sinks)
    least = Severity[severity.upper()]
    if follows:
        if to is not None or wanted_id is not None or fail_on is not None or keep_going:
            raise click.UsageError("--follow goes without --to, --id, --fail-on and --keep-going.")
        if cluster_key is not None:
            raise click.UsageError("--follow goes without --cluster-key: sinks keep what they get.")
        asked = FollowOptions(where, from_, until_offset, interval, least, as_json=output == "json")
        follow(asked, rules, options)
        return
    if options.any:
        raise click.UsageError("Sinks go with --follow.")
    notes: list[str] = []
    damage: list[str] | None = [] if keep_going else None
    with failing():
        replica = one_replica(where)
        opener = opener_of(cluster_key, replica)
        reader, heads = replica.reader(), OpenedHeads(opener)
        end, begin_ms = last_offset(reader, to), since_ms(reader, from_)
        with progress("reading the log") as on_progress:
            question = Question([replica], end, on_progress, notes, damage)
            everything = of_log(question, rules, heads)
    print_notes([*notes, *not_judged(heads.left_sealed)])
    found = [one for one in everything if one.until_ms >= begin_ms and one.severity >= least]
    if wanted_id is not None:
        _show_one(wanted_id, everything, rules, where, output, opener)
    elif output == "json":
        print_json([opener.named(one.as_json()) for one in found])
    else:
        print_findings([named_finding(one, opener) for one in found])
    fail_for(damage)
    if fail_on is not None and any(one.severity >= Severity[fail_on.upper()] for one in found):
        raise click.exceptions.Exit(_FOUND)


def _show_one(
    wanted_id: str,
    everything: list[Finding],
    rules: RuleSet,
    where: str,
    output: str,
    opener: PersonOpener,
) -> None:
    one = next((each for each in everything if each.id == wanted_id), None)
    if one is None:
        say(f"There are {len(everything)} findings.", err=True)
        raise Failure(f"there is no finding {wanted_id}. Without --id, the command lists the ids.")
    rule = rules.rules[one.rank]
    if output == "json":
        print_json({**opener.named(one.as_json()), "meaning": rule.meaning, "advice": rule.advice})
    else:
        print_finding(named_finding(one, opener), rule, where)
