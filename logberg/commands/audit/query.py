"""`logberg audit query`: SQL over the tables that the pipeline keeps."""

import datetime as dt
from typing import Any

import click

from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, say, show, table
from logberg.commands.audit.failures import failing


@click.command("query")
@click.argument("folder")
@click.argument("name", required=False)
@click.option("--sql", help="Run this SQL instead of a ready query.")
@click.option(
    "--set",
    "given",
    multiple=True,
    metavar="PARAMETER=VALUE",
    help="Give a parameter of the query another value; may be repeated.",
)
@click.option("--show", "shown", is_flag=True, help="Print the query's SQL instead of running it.")
@output_option
def command(
    folder: str, name: str | None, sql: str | None, given: tuple[str, ...], shown: bool, output: str
) -> None:
    """Run a ready query, or any SQL, over kept tables.

    FOLDER is what `logberg audit run pipeline --out` wrote, or its URL. Without NAME and --sql, the
    ready queries are listed. Nothing is changed, and a query reads the kept tables only: bronze,
    partition_events, partition_intervals, broker_intervals, config_events, privileged,
    availability, changes, findings.
    """
    try:
        from audit.lake.place import LakeError, LakePlace  # noqa: PLC0415 - needs the extra
        from audit.lake.queries.catalogue import ready_queries  # noqa: PLC0415
        from audit.lake.queries.running import QueryError, run_query, run_sql  # noqa: PLC0415
    except ImportError as error:
        raise Failure(
            f"kept tables need the extra ({error.name} is missing): install logberg[audit]"
        ) from None
    if name is not None and sql is not None:
        raise click.UsageError("give a NAME or --sql, not both")
    queries = ready_queries()
    if name is not None and name not in queries:
        raise Failure(f"there is no query {name!r}; there are {', '.join(queries)}")
    if name is None and sql is None:
        _list(queries.values(), output)
        return
    if shown:
        for line in (queries[name].sql if name is not None else sql or "").splitlines():
            say(line)
        return
    place = LakePlace(folder)
    try:
        with failing():
            answer = (
                run_sql(place, sql or "", _pairs(given))
                if name is None
                else run_query(place, queries[name], _pairs(given))
            )
    except (LakeError, QueryError) as error:
        raise Failure(str(error)) from None
    rows = [[_plain(value) for value in row] for row in answer.rows]
    if output == "json":
        print_json([dict(zip(answer.columns, row, strict=True)) for row in rows])
    else:
        show(table(answer.columns, ([_cell(value) for value in row] for row in rows)))


def _list(queries: Any, output: str) -> None:
    if output == "json":
        print_json(
            [
                {
                    "name": query.name,
                    "subject": query.subject,
                    "sentence": query.sentence,
                    "parameters": [parameter._asdict() for parameter in query.parameters],
                }
                for query in queries
            ]
        )
        return
    rows = [(query.subject, query.name, query.sentence) for query in queries]
    show(table(("about", "query", "answers"), rows))


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for each in given:
        name, sign, value = each.partition("=")
        if not sign:
            raise click.UsageError(f"--set {each}: write PARAMETER=VALUE")
        pairs[name] = value
    return pairs


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, int | float | str | bool) or value is None:
        return value
    return str(value)


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "-" if value is None else value
