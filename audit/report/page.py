"""The page: turns facts into one HTML file that needs nothing else and loads nothing.

Rule: the template escapes every word from the log. A content security policy in the page forbids
all requests, and all scripts and styles but the two that it names by their hash. The page depends
only on the facts: the same facts give the same bytes.
"""

import base64
import hashlib
from collections.abc import Iterable, Iterator
from importlib import resources
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from audit.report.attempts import attempts
from audit.report.availability import AvailabilitySums
from audit.report.changes import changes
from audit.report.details import Details
from audit.report.facts import ChangeSum, Facts
from audit.report.fencing import fencing
from audit.report.findings import findings, marked
from audit.report.integrity import VERIFIED, integrity
from audit.report.page_data import packed
from audit.report.privileged import privileged
from audit.report.summary import Sections, sentences, tiles
from audit.report.timelines import TimelineSums, UnknownTimelineError
from audit.report.transactions import transactions
from audit.report.words import counted, duration, minute, moment, number
from metadata.sealed_addresses import is_sealed

__all__ = ["UnknownTimelineError", "page"]

_FOLDER: Final = "template"
_SCRIPTS: Final = ("page.js", "records.js", "models.js", "timelines.js", "start.js")
"""Joined into one, in this order."""


def page(facts: Facts) -> str:
    """Write the page.

    Reads the history once, then the records that the page shows. Raises UnknownTimelineError, and
    as `ReportHistory`.
    """
    period = facts.period
    details = Details(facts.where, facts.log_start)
    times, lines = AvailabilitySums(period), TimelineSums(period)

    def on_interval(row: tuple[Any, ...]) -> None:
        times.add(row)
        lines.add(row)

    tables = facts.history.read(on_interval)
    sealed = _SealedSeen()
    changed = changes(sealed.passed(tables.changes), period, details, marked(tables.findings))
    what_was_found = findings(
        tables.findings,
        facts.rules,
        period,
        details,
        sealed=sealed.any,
    )
    sections = Sections(
        integrity(facts),
        changed,
        times.section(details),
        fencing(tables.broker_intervals, period, details),
        privileged(tables.privileged, period, details),
        transactions(tables.unsettled, period, details),
        attempts(tables.attempts, period, details),
    )
    drawn = lines.section(tables.broker_intervals, facts.timelines)
    style, script = _asset("page.css"), "".join(map(_asset, _SCRIPTS))
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            facts=facts,
            findings=what_was_found,
            found=sections,
            timelines=drawn,
            tiles=tiles(sections),
            sentences=sentences(facts, sections),
            verified=VERIFIED,
            data=packed(facts, drawn, details),
            style=Markup(style),  # noqa: S704 - ours
            script=Markup(script),  # noqa: S704 - ours
            policy=_policy(style, script),
        )
    )


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader(__package__, _FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        number=number, counted=counted, duration=duration, minute=minute, moment=moment
    )
    return made


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(_FOLDER, name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Return the content security policy. It allows only this style and this script."""
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


class _SealedSeen:
    """Notes whether any change came from a sealed address. The rows are read only once."""

    def __init__(self) -> None:
        self.any = False

    def passed(self, rows: Iterable[ChangeSum]) -> Iterator[ChangeSum]:
        """Yield the rows."""
        for row in rows:
            self.any = self.any or is_sealed(row.client_address)
            yield row
