"""`logberg audit report`: one HTML page for people."""

import re
import time
from pathlib import Path
from typing import Any

import click

from audit.places.replicas import open_replicas
from logberg.cli.failure import Failure
from logberg.cli.output import facts, output_option, print_json, show
from logberg.cli.progress import progress_of_steps
from logberg.commands.audit.failures import failing, print_notes, where_argument
from logberg.commands.audit.local_paths import LocalPath
from logberg.commands.audit.rules_option import rules_of, rules_option

FILE = "audit-report.html"
_HEAD = re.compile(r"([0-9]{1,19}):([0-9a-fA-F]{64})")


@click.command("report")
@where_argument
@click.option(
    "--out",
    type=LocalPath(file_okay=False),
    required=True,
    help=f"Folder for {FILE}; it is made if it doesn't exist.",
)
@click.option("--from", "from_moment", help="Begin with the day of this offset or time (UTC).")
@click.option("--to", "to_moment", help="End at this offset or time. [default: the log's end]")
@click.option(
    "--head",
    "heads",
    multiple=True,
    metavar="OFFSET:HASH",
    help="A chain hash written down earlier, which the logs must contain. Repeatable.",
)
@click.option(
    "--timeline",
    "timelines",
    multiple=True,
    metavar="THING",
    help="Draw this first: orders-3, topic:orders, broker:2. Repeatable. The page draws any other "
    "when it is asked. [default: the partition longest without a leader]",
)
@rules_option
@click.option("--title", help="The title of the page.")
@output_option
def command(
    where: str,
    out: Path,
    from_moment: str | None,
    to_moment: str | None,
    heads: tuple[str, ...],
    timelines: tuple[str, ...],
    rules_file: Path | None,
    title: str | None,
    output: str,
) -> None:
    """Make one HTML page about the log for people. It works offline and without this program.

    It has an integrity certificate with the head (the last chain hash) to write down, who changed
    what, availability, leaders and in-sync replicas over time, fencing, privileged changes, and
    what is not proved. A damaged log gets a page too, which says so first. Exit code 0 means that
    the page was made, not that the log is sound.
    """
    try:
        from audit.report.gathering import Wanted, gather  # noqa: PLC0415 - heavy, and optional
        from audit.report.page import UnknownTimelineError, page  # noqa: PLC0415
    except ImportError as error:
        raise Failure(f"the report needs {error.name}. Install logberg[audit].") from None
    known = tuple(map(_head, heads))
    rules = rules_of(rules_file)
    now_ms = int(time.time() * 1000)
    wanted = Wanted(from_moment, to_moment, title, now_ms, known, where, timelines, rules)
    path = out / FILE
    try:
        with failing():
            with progress_of_steps("opening") as on_progress:
                gathered = gather(open_replicas(where), wanted, on_progress)
                text = page(gathered)
            out.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except UnknownTimelineError as error:
        raise Failure(f"--timeline: {error}") from None
    _tell(path, len(text.encode()), gathered, output)


def _head(text: str) -> tuple[int, bytes]:
    found = _HEAD.fullmatch(text)
    if not found:
        raise click.BadParameter(
            f"{text!r}: write an offset, a colon and 64 hexadecimal digits, as a report shows them."
        )
    return int(found[1]), bytes.fromhex(found[2])


def _tell(path: Path, size: int, gathered: Any, output: str) -> None:
    """Print where the page is, and the line to write down."""
    verified = gathered.verified
    head = "" if verified.head is None else f"{verified.head[0]}:{verified.head[1]}"
    if output == "json":
        print_json(
            {
                "report": str(path),
                "bytes": size,
                "ok": verified.ok,
                "head": head or None,
                "endOffset": gathered.end_offset,
                "fromMs": gathered.period.from_ms,
                "untilMs": gathered.period.until_ms,
                "notes": list(gathered.notes),
            }
        )
        return
    pairs = [
        ("report", f"{path} ({size // 1000} kB)"),
        ("log", "sound" if verified.ok else "NOT SOUND: the page's first lines say why"),
        ("head", head or "none that all replicas agree on"),
    ]
    show(facts(pairs))
    print_notes(gathered.notes)
