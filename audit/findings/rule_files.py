"""Files of rules: TOML, one table for each rule.

Rule: `builtin_rules.toml` holds the rules that everybody has. A user's file may add rules, change
single fields of a built-in rule (a table of the same name), or switch one off (`off = true`). An
error names the file, the line, the rule and the field, and says what may stand there.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from string import Formatter
from typing import Any, Final, NamedTuple

from audit.findings.events import KINDS, TRAITS
from audit.findings.rules import PER, FindingRule, RuleSet, Severity
from audit.findings.words import SENTENCE_FIELDS

BUILTIN: Final = "builtin_rules.toml"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{1,40}")
_LENGTH: Final = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)", re.ASCII)
_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NEEDED: Final = ("severity", "kinds", "gather", "sentence")


class RuleError(ValueError):
    """A file of rules can't be used. The message names the file, the line, the rule and why."""


class RuleTable(NamedTuple):
    """A rule as it stands in files: each field with the place that it came from."""

    name: str
    fields: Mapping[str, Any]
    places: Mapping[str, str]
    """By field, and by "" for the rule itself: `FILE, line NUMBER`."""

    @property
    def off(self) -> bool:
        """The rule is switched off."""
        return self.fields.get("off") is True

    def changed_by(self, other: "RuleTable") -> "RuleTable":
        """Return this table with the fields of another one laid over it."""
        return RuleTable(
            self.name, {**self.fields, **other.fields}, {**self.places, **other.places}
        )

    def wrong(self, field: str, why: str) -> RuleError:
        """Return an error about a field."""
        place = self.places.get(field) or self.places[""]
        about = f"rule {self.name}, {field}" if field else f"rule {self.name}"
        return RuleError(f"{place}: {about}: {why}")


@lru_cache(maxsize=1)
def builtin_rules() -> RuleSet:
    """Return the rules that everybody has."""
    return read_rules("", "")


def read_rules(text: str, location: str) -> RuleSet:
    """Return the built-in rules as a user's file adds to them and changes them.

    `location` is the file's name, for errors. Raises RuleError.
    """
    builtin = files(__package__).joinpath(BUILTIN).read_text(encoding="utf-8")
    tables = {table.name: table for table in _tables(builtin, BUILTIN)}
    for table in _tables(text, location):
        before = tables.get(table.name)
        tables[table.name] = table if before is None else before.changed_by(table)
    rules = [_rule(table) for table in tables.values()]
    return RuleSet([rule for rule in rules if rule is not None])


def _tables(text: str, location: str) -> Iterable[RuleTable]:
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"{location}: this is not TOML: {error}") from None
    for name, fields in parsed.items():
        if not isinstance(fields, dict):
            line = _line(text, re.compile(rf"\s*{re.escape(name)}\s*="))
            raise RuleError(
                f"{location}, line {line}: {name} stands outside of a rule. Begin a rule with its "
                "name in brackets, such as [payments_deleted]."
            )
        places = {key: f"{location}, line {_line_of(text, name, key)}" for key in ("", *fields)}
        yield RuleTable(name, fields, places)


def _line_of(text: str, name: str, field: str) -> int:
    """Return the line of a rule's field, counted from 1; of the rule's head if it isn't found."""
    head = _line(text, re.compile(rf"\s*\[\s*[\"']?{re.escape(name)}[\"']?\s*\]"))
    if not field:
        return head
    found = _line(text, re.compile(rf"\s*[\"']?{re.escape(field)}[\"']?\s*="), head)
    return found or head


def _line(text: str, pattern: re.Pattern[str], after: int = 0) -> int:
    for number, line in enumerate(text.splitlines(), 1):
        if number > after and pattern.match(line):
            return number
    return after


def _rule(table: RuleTable) -> FindingRule | None:
    """Check a table; return its rule, or None if it is switched off."""
    fields = table.fields
    if not _NAME.fullmatch(table.name):
        raise table.wrong("", "a name has small letters, digits and underscores")
    for field in fields:
        if field not in _READERS:
            raise table.wrong(field, f"there is no such field.{_meant(field, _READERS)}")
    if table.off:
        return None
    for field in _NEEDED:
        if field not in fields:
            raise table.wrong("", f"the field {field} is missing")
    values: dict[str, Any] = {}
    for field, value in fields.items():
        attribute, read = _READERS[field]
        try:
            values[attribute] = read(value)
        except ValueError as error:
            raise table.wrong(field, str(error)) from None
    values.pop("off", None)
    rule = FindingRule(name=table.name, **{"meaning": "", "advice": "", **values})
    _check_whole(table, rule)
    return rule


def _check_whole(table: RuleTable, rule: FindingRule) -> None:
    """Check what concerns more than one field."""
    if rule.count > 1 and not rule.within_ms:
        raise table.wrong("count", 'say also within how long: within = "10m"')
    if rule.within_ms and rule.count < 2:
        raise table.wrong("within", "say also how many there must be: count = 3")
    if bool(rule.lasts_ms) != bool(rule.until):
        raise table.wrong("lasts", 'lasts and until belong together: until = ["leader_found"]')
    if rule.lasts_ms and rule.count > 1:
        raise table.wrong("lasts", "a rule has either lasts or count")


def _severity(value: Any) -> Severity:
    words = {each.word: each for each in Severity}
    if value not in words:
        raise ValueError(f"{value!r} is no severity. Say {', '.join(reversed(words))}.")
    return words[value]


def _names(known: Mapping[str, str], what: str) -> Callable[[Any], tuple[str, ...]]:
    def read(value: Any) -> tuple[str, ...]:
        names = _globs(value)
        for name in names:
            if name not in known:
                raise ValueError(f"{name!r} is no {what}.{_meant(name, known)}")
        return names

    return read


def _globs(value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise ValueError("write a text, or a list of texts")
    return tuple(values)


def _length_ms(value: Any) -> int:
    found = _LENGTH.fullmatch(value) if isinstance(value, str) else None
    if found is None or not int(found[1]):
        raise ValueError(f'{value!r} is no length of time. Write such as "10m", "24h", "30d".')
    return int(found[1]) * _MS[found[2]]


def _count(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= 1_000_000:
        raise ValueError(f"{value!r} is no number from 1 to 1,000,000")
    return value


def _amount(value: Any) -> int:
    return _length_ms(value) if isinstance(value, str) else _count(value)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("write a sentence")
    return value


def _sentence(value: Any) -> str:
    text = _text(value)
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise ValueError(f"the braces are wrong: {error}") from None
    for _, name, layout, conversion in parts:
        if name is None:
            continue
        if name not in SENTENCE_FIELDS:
            raise ValueError(f"{{{name}}} can't be filled in.{_meant(name, SENTENCE_FIELDS)}")
        if layout or conversion:
            raise ValueError(f"{{{name}}} takes nothing besides its name")
    return text


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("write true or false")
    return value


def _meant(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    return f" Do you mean {close[0]}?" if close else f" Known are {', '.join(names)}."


_READERS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "severity": ("severity", _severity),
    "kinds": ("kinds", _names(KINDS, "kind of event")),
    "traits": ("traits", _names(TRAITS, "trait")),
    "without": ("without", _names(TRAITS, "trait")),
    **{
        field: (field, _globs)
        for field in (
            "subject",
            "actor",
            "principal",
            "method",
            "address",
            "operation",
            "grantee",
            "what",
            "reason",
        )
    },
    "at_least": ("at_least", _amount),
    "count": ("count", _count),
    "within": ("within_ms", _length_ms),
    "lasts": ("lasts_ms", _length_ms),
    "until": ("until", _names(KINDS, "kind of event")),
    "per": ("per", _names(PER, "thing that tells findings apart")),
    "gather": ("gather_ms", _length_ms),
    "sentence": ("sentence", _sentence),
    "meaning": ("meaning", _text),
    "advice": ("advice", _text),
    "off": ("off", _flag),
}
"""By field of a file: the field of `FindingRule`, and what reads it (raises ValueError)."""
