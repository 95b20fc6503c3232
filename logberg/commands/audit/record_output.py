"""Prints records and batches for `logberg audit log`, `who`, `history` and `follow`.

Rule: who, when and why come first. A record that doesn't count is marked.
"""

from typing import Any

import msgspec
from rich.text import Text

from audit.questions.search import FoundRecord
from audit.reading.callers import caller
from audit.reading.dump import utc
from audit.reading.opening import shown_header
from audit.reading.settling import SETTLED, Logged
from ledger.batch import BatchHeader
from logberg.cli.output import Piece, print_line, say
from metadata.person_opener import NO_OPENER, PersonOpener
from metadata.uuids import uuid_text

STYLES = {"aborted": "red", "open": "yellow", "created": "green", "removed": "red"}


def batch_line(header: BatchHeader) -> str:
    """Return a batch's heading: offsets, epoch, time, caller, operation, reason."""
    end = header.end_offset - 1
    span = f"{header.base_offset}" if header.count == 1 else f"{header.base_offset}-{end}"
    return f"{span}  epoch {header.epoch}  {utc(header.timestamp_ms)}  {cause(header)}"


def cause(header: BatchHeader) -> str:
    """Return the caller, operation, reason and request id, as far as they are known."""
    said = header.provenance
    carried = (said.auth_method, said.client_address)
    who = caller(said.principal, said.on_behalf_of, *carried, header.acted_as)
    words = [who, said.operation or "-"]
    if said.reason:
        words.append(f"“{said.reason}”")
    if said.request_id:
        words.append(f"request {uuid_text(said.request_id)}")
    return "  ".join(words)


def cause_json(header: BatchHeader, opener: PersonOpener = NO_OPENER) -> dict[str, Any]:
    """Return a batch's heading as plain values, without empty ones. `opener` opens what it can."""
    return {
        "baseOffset": header.base_offset,
        "epoch": header.epoch,
        "time": utc(header.timestamp_ms),
        **opener.cause(header.cause(uuid_text)),
    }


def record_line(
    found: FoundRecord, *, show_secrets: bool, opener: PersonOpener = NO_OPENER
) -> tuple[Piece, ...]:
    """Return a record: what it is about, its outcome unless it is settled, its fields."""
    logged = found.logged
    words = opener.record_words(logged.record, show_secrets=show_secrets)
    fields = " ".join(f"{name}={short(value)}" for name, value in words["data"].items())
    about = f"  {found.subjects[0]}" if found.subjects else ""
    flag = () if logged.outcome == SETTLED else ("  ", styled(logged.outcome.upper()))
    return (f"    {logged.offset}  {words['type']}{about}", *flag, f"  {fields}" if fields else "")


def record_json(
    logged: Logged,
    subjects: tuple[str, ...],
    *,
    show_secrets: bool,
    opener: PersonOpener = NO_OPENER,
) -> dict[str, Any]:
    """Return a record, its batch's heading and its outcome as plain values."""
    return {
        "offset": logged.offset,
        **cause_json(logged.header, opener),
        "outcome": logged.outcome,
        "settledBase": logged.settled_base,
        "subjects": subjects,
        **opener.record_words(logged.record, show_secrets=show_secrets),
    }


class RecordPrinter:
    """Prints records under the headings of their batches, or one JSON document on each line."""

    def __init__(
        self, *, show_secrets: bool, as_json: bool, opener: PersonOpener = NO_OPENER
    ) -> None:
        """`opener` opens sealed addresses and names. It may be replaced between two records."""
        self.opener = opener
        self.shown = 0
        self._show_secrets = show_secrets
        self._as_json = as_json
        self._header: BatchHeader | None = None

    def show(self, found: FoundRecord) -> None:
        """Print one record."""
        self.shown += 1
        logged, secrets, opener = found.logged, self._show_secrets, self.opener
        if self._as_json:
            print_line(record_json(logged, found.subjects, show_secrets=secrets, opener=opener))
            return
        if self._header is None or logged.header.base_offset != self._header.base_offset:
            self._header = logged.header
            say(batch_line(shown_header(opener, logged.header)))
        say(*record_line(found, show_secrets=secrets, opener=opener))


def styled(word: str) -> Text:
    """Return a word in its colour."""
    return Text(word, style=STYLES.get(word.lower(), ""))


def short(value: Any) -> str:
    """Return a value with as few characters as possible."""
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return "[" + ",".join(short(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{short(item)}" for name, item in value.items()) + "}"
    if isinstance(value, bool):
        return msgspec.json.encode(value).decode()
    return str(value)
