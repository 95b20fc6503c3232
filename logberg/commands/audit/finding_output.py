"""Findings on a terminal: a list that is read at 80 columns, and one finding in full."""

import shlex
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec
from rich.text import Text

from audit.findings.finding import Finding
from audit.findings.rules import FindingRule, Severity
from audit.findings.words import moment
from audit.reading.callers import caller
from logberg.cli.output import facts, say, show, shown
from metadata.person_opener import PersonOpener

_WIDTH: Final = 76
"""Characters of a line on a terminal, without the indent."""
_INDENT: Final = "  "
_STYLES: Final = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "",
}
_RANGES: Final = 12
"""How many ranges of offsets are shown of one finding."""


def print_findings(found: list[Finding]) -> None:
    """Print a list of findings, ranked already."""
    if not found:
        say("Nothing was found.")
        return
    for one in found:
        print_short(one)
    counts = Counter(one.severity for one in found)
    words = [f"{counts[each]} {each.word}" for each in reversed(Severity) if counts[each]]
    total = f"{len(found)} finding{'' if len(found) == 1 else 's'}"
    say(f"{total}: {', '.join(words)}. --id ID shows one in full.")


def named_finding(one: Finding, opener: PersonOpener) -> Finding:
    """Return a finding as text shows it: with the name beside each pseudonym of its caller."""
    sentence = one.sentence
    for principal in {one.principal, one.on_behalf_of}:
        if opener.name_of(principal) is not None:
            sentence = sentence.replace(principal, opener.shown(principal))
    return msgspec.structs.replace(
        one,
        sentence=sentence,
        principal=opener.shown(one.principal),
        on_behalf_of=opener.shown(one.on_behalf_of),
    )


def print_short(one: Finding) -> None:
    """Print one finding in a few lines: severity and id, sentence, when, who, why."""
    say(Text(one.severity.word.upper(), style=_STYLES[one.severity]), f"  {one.id}")
    _say_wrapped(one.sentence)
    when = moment(one.time_ms)
    if one.until_ms // 1_000 != one.time_ms // 1_000:
        when += f" to {moment(one.until_ms)}"
    events = f", {one.count} events" if one.count > 1 else ""
    _say_wrapped(f"{when}{events}")
    _say_wrapped(f"by {_caller(one)}{f': {one.reason}' if one.reason else ''}")
    say("")


def print_finding(one: Finding, rule: FindingRule, where: str) -> None:
    """Print one finding in full, and the command that prints its records."""
    print_short(one)
    offsets = list(ranges(one.offsets))
    shown_ranges = ", ".join(_range_words(*each) for each in offsets[:_RANGES])
    if len(offsets) > _RANGES:
        shown_ranges += f" and {len(offsets) - _RANGES} more; --output json has all"
    pairs = [
        ("rule", one.rule),
        ("meaning", rule.meaning),
        ("do", rule.advice),
        ("operation", one.operation or "-"),
        ("reason", one.reason or "none was given"),
        ("records", str(len(one.offsets))),
        ("offsets", shown_ranges),
    ]
    show(facts([pair for pair in pairs if pair[1]]))
    first, last = one.offsets[0], one.offsets[-1]
    say("")
    say(f"logberg audit log {shlex.quote(where)} --from {first} --to {last + 1}")


def ranges(offsets: Iterable[int]) -> Iterable[tuple[int, int]]:
    """Return the ranges of offsets that follow each other; both ends are included."""
    first = last = None
    for offset in offsets:
        if last is not None and offset == last + 1:
            last = offset
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = offset
    if first is not None and last is not None:
        yield first, last


def _range_words(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _caller(one: Finding) -> str:
    return caller(one.principal, one.on_behalf_of, one.auth_method, one.address, one.acted_as)


def _say_wrapped(text: str) -> None:
    """Print text that may be long: in lines on a terminal, whole elsewhere.

    It is made safe before it is wrapped, so that it stays so.
    """
    safe = shown(text)
    lines = textwrap.wrap(safe, _WIDTH, break_on_hyphens=False) if sys.stdout.isatty() else [safe]
    for line in lines:
        say(f"{_INDENT}{line}")
