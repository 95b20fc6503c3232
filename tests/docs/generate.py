"""Write the parts of the docs that are made from the source.

    python -m tests.docs.generate          writes the made parts of pages in docs/
    python -m tests.docs.generate --check  exits 1 when they are not current

Rule: between `<!-- made: NAME -->` and `<!-- end -->` stands what is made; the rest is written by
hand. A log event's sentence is written by hand too, in its row of docs/log-events.md, and kept.
The figures in docs/safety.md are made from tests/evidence/recorded.csv, two tables of docs/scale.md
from benchmarks/scale/costs.csv.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from audit.findings.events import KINDS as EVENT_KINDS
from audit.findings.events import TRAITS
from audit.findings.rule_files import builtin_rules
from audit.findings.rules import FindingRule
from audit.findings.words import SENTENCE_FIELDS, length
from benchmarks.scale.needs import costs_table, needs_table
from controller.http.route import Route
from controller.http.routes import ROUTES
from logberg.commands.brokers import list_brokers
from logberg.processes.settings.broker_settings import BrokerSettings
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.server_properties.key_groups import KEYS, KeyGroup
from logberg.witness.settings import WitnessSettings
from metadata.errors import ErrorCode
from metadata.features import METADATA_VERSION, METADATA_VERSION_NAMES
from metadata.record_levels import NEEDS
from metadata.records.schema import camel
from tests.docs import audit_tables, source
from tests.evidence.page import promise_table, recorded_table
from tests.evidence.recorded import read_rows

REFERENCE = source.ROOT / "docs" / "reference.md"
FORMAT = source.ROOT / "docs" / "format.md"
KAFKA_KEYS = source.ROOT / "docs" / "kafka-keys.md"
EVENTS = source.ROOT / "docs" / "log-events.md"
SAFETY = source.ROOT / "docs" / "safety.md"
SCALE = source.ROOT / "docs" / "scale.md"
FINDINGS = source.ROOT / "docs" / "audit" / "findings.md"
_MADE = re.compile(r"<!-- made: ([a-z-]+) -->\n.*?<!-- end -->", re.DOTALL)
_ROW = re.compile(r"^\| `([a-z_]+)` \|.*\| (.*) \|$", re.MULTILINE)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    columns = list(head)
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _settings(kind: type[Any]) -> str:
    return table(
        ("key", "kind", "default", "meaning"),
        ((f"`{s.key}`", s.kind, s.default, s.meaning) for s in source.settings(kind)),
    )


def _routes() -> str:
    rows = [
        (f"`{route.method} {route.path}`", route.summary, _query(route), _body(route))
        for route in ROUTES
    ]
    return table(("request", "does", "query", "body → answer"), rows)


def _query(route: Route) -> str:
    return ", ".join(f"`{parameter.name}`" for parameter in route.parameters)


def _body(route: Route) -> str:
    asked = f"{route.request.__name__} → " if route.request is not None else ""
    return asked + (route.reply.__name__ if route.reply is not None else route.content)


def _parameters() -> str:
    found = {parameter.name: parameter for route in ROUTES for parameter in route.parameters}
    rows = ((f"`{p.name}`", p.kind, p.summary) for p in found.values())
    return table(("parameter", "kind", "meaning"), rows)


def _metrics(package: str) -> str:
    rows = [
        (f"`{m.name}`", m.kind, ", ".join(m.labels), m.meaning)
        for m in source.metrics()
        if (m.package == "broker_agent") == (package == "broker_agent")
    ]
    return table(("metric", "kind", "labels", "meaning"), rows)


def _connection() -> str:
    context = click.Context(list_brokers)
    rows = []
    for option in list_brokers.params:
        assert isinstance(option, click.Option)
        default = option.get_default(context)
        # click has a mark of its own for "none".
        shown = f"`{default}`" if isinstance(default, str | Path) or type(default) is float else ""
        names = ", ".join(f"`{name}`" for name in option.opts)
        rows.append((names, f"`{option.envvar}`", shown, option.help or ""))
    return table(("option", "variable", "default", "meaning"), rows)


def _levels() -> str:
    """Which records and fields need which level of metadata.version, as their classes say."""
    needed: dict[int, dict[str, list[str]]] = {}
    for record, needs in NEEDS.items():
        for need in needs:
            if need.feature != METADATA_VERSION:
                continue
            named = needed.setdefault(need.level, {})
            named.setdefault(record.__name__, []).extend([need.field] if need.field else [])
    rows = []
    for level, records in sorted(needed.items()):
        words = (
            " and ".join(f"`{camel(field)}`" for field in fields) + f" of {name}"
            if fields
            else name
            for name, fields in records.items()
        )
        rows.append((str(level), METADATA_VERSION_NAMES[level], ", ".join(words)))
    return table(("`metadata.version`", "Kafka's name", "needed by"), rows)


def _errors() -> str:
    rows = (
        (
            f"`{code}`",
            str(code.status),
            code.fault,
            "yes" if code.retriable else "no",
            code.facts.advice,
        )
        for code in ErrorCode
    )
    return table(("code", "status", "fault", "retry", "what to do"), rows)


def _used_keys() -> str:
    rows = (
        (f"`{key}`", ", ".join(f"`{name}`" for name in rule.settings.split(", ") if name), rule.why)
        for key, rule in KEYS.items()
        if rule.group is KeyGroup.USED
    )
    return table(("key", "our setting", "does"), rows)


def _refused_keys() -> str:
    rows = (
        (f"`{key}`", "" if rule.unless is None else f"`{rule.unless}`", rule.why)
        for key, rule in KEYS.items()
        if rule.group is KeyGroup.REFUSED
    )
    return table(("key", "accepted with", "why it is refused else"), rows)


def _static_keys() -> str:
    keys = [f"`{key}`" for key, rule in KEYS.items() if rule.group is KeyGroup.CONFIG]
    return f"{', '.join(keys)}.\n"


def _ignored_keys() -> str:
    by_reason: dict[str, list[str]] = {}
    for key, rule in KEYS.items():
        if rule.group is KeyGroup.IGNORED:
            by_reason.setdefault(rule.why, []).append(f"`{key}`")
    return table(("because", "keys"), ((why, ", ".join(keys)) for why, keys in by_reason.items()))


def _finding_rules() -> str:
    rows = (
        (f"`{rule.name}`", rule.severity.word, _when(rule), f"{rule.meaning} {rule.advice}")
        for rule in builtin_rules().rules
    )
    return table(("rule", "severity", "looks at", "means, and what to do"), rows)


def _when(rule: FindingRule) -> str:
    """The conditions of a rule in words."""
    parts = [", ".join(f"`{kind}`" for kind in rule.kinds)]
    parts += [f"with `{trait}`" for trait in rule.traits]
    parts += [f"without `{trait}`" for trait in rule.without]
    parts += [f"about `{glob}`" for glob in rule.subject]
    if rule.at_least:
        parts.append(f"at least {length(rule.at_least)}")
    if rule.count > 1:
        parts.append(f"{rule.count} within {length(rule.within_ms)}")
    if rule.lasts_ms:
        parts.append(f"for {length(rule.lasts_ms)}")
    if rule.per:
        parts.append(f"one for each {' and '.join(rule.per)}")
    return "; ".join([*parts, f"gathers for {length(rule.gather_ms)}"])


def _words(head: str, words: Mapping[str, str]) -> str:
    return table((head, "means"), ((f"`{word}`", says) for word, says in words.items()))


MADE: dict[str, Callable[[], str]] = {
    "finding-rules": _finding_rules,
    "finding-events": lambda: _words("event", EVENT_KINDS),
    "finding-traits": lambda: _words("trait", TRAITS),
    "finding-words": lambda: _words("word", SENTENCE_FIELDS),
    "controller-settings": lambda: _settings(ControllerSettings),
    "broker-settings": lambda: _settings(BrokerSettings),
    "witness-settings": lambda: _settings(WitnessSettings),
    "routes": _routes,
    "parameters": _parameters,
    "connection-options": _connection,
    "errors": _errors,
    "controller-metrics": lambda: _metrics("controller"),
    "levels": _levels,
    "kafka-used": _used_keys,
    "kafka-refused": _refused_keys,
    "kafka-static": _static_keys,
    "kafka-ignored": _ignored_keys,
    "scale-costs": costs_table,
    "scale-needs": needs_table,
    "agent-metrics": lambda: _metrics("broker_agent"),
    "audit-overview": audit_tables.overview,
    "audit-definitions": audit_tables.definitions,
    "audit-tables": audit_tables.all_tables,
    "audit-queries": audit_tables.all_queries,
}


def reference(text: str) -> str:
    """The reference, or the format, with its made parts as they should be."""
    return _MADE.sub(lambda m: f"<!-- made: {m[1]} -->\n{MADE[m[1]]()}<!-- end -->", text)


def sentences(text: str) -> dict[str, str]:
    """What docs/log-events.md says of each event, by name."""
    return {name: sentence.strip() for name, sentence in _ROW.findall(text)}


def log_events(text: str) -> str:
    """The catalogue with its rows as they should be, sentences kept."""
    known = sentences(text)
    rows = [
        (
            f"`{event.name}`",
            ", ".join(event.levels),
            ", ".join(event.packages),
            ", ".join(f"`{field}`" for field in event.fields),
            known.get(event.name, ""),
        )
        for event in source.events()
    ]
    made = table(("event", "level", "package", "fields", "means"), rows)
    return _MADE.sub(lambda _: f"<!-- made: events -->\n{made}<!-- end -->", text)


def safety(text: str) -> str:
    """The safety page with its figures as they should be."""
    rows = read_rows()
    parts = {"recorded": recorded_table(rows), "promises": promise_table(rows, text)}
    return _MADE.sub(lambda m: f"<!-- made: {m[1]} -->\n{parts[m[1]]}<!-- end -->", text)


def main() -> int:
    """Write, or check."""
    stale = []
    for path, make in (
        (REFERENCE, reference),
        (FORMAT, reference),
        (KAFKA_KEYS, reference),
        (SCALE, reference),
        (FINDINGS, reference),
        (audit_tables.PAGE, reference),
        (audit_tables.QUERIES_PAGE, reference),
        (EVENTS, log_events),
        (SAFETY, safety),
    ):
        before = path.read_text() if path.exists() else ""
        after = make(before)
        if after != before:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(after)
    if stale:
        sys.stdout.write(f"{', '.join(stale)}: {'stale' if '--check' in sys.argv else 'written'}\n")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
