"""Gathers the values of Kafka's keys from the file, the environment and the command line.

Rule: the command line wins over the environment, and the environment over the file. A variable's
name is that of Kafka's own container images: KAFKA_ and the key in upper case, a dot as `_`, `_` as
`__`, `-` as `___`. Variables count only beside a server.properties: a node that has a file of our
own form must not change because something else on the machine sets them.

Each value is checked against Kafka's own definition of its key. All problems are reported together.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from logberg.processes.settings.key_notes import KeyNote, NoteKind
from logberg.processes.settings.server_properties.key_groups import (
    KEYS,
    OWN,
    KeyGroup,
    definition_of,
    rule_of,
    similar,
)
from logberg.processes.settings.server_properties.syntax import Given, Properties, Source
from logberg.processes.settings.settings_files import SettingsError
from metadata.configs.values import ConfigValueError
from metadata.configs.values import parse as parse_value

CLUSTER_ID: Final = "logberg.cluster.id"
_PREFIX: Final = "KAFKA_"
_OF_CLUSTER: Final = "CLUSTER_ID"
"""Kafka's container images take the cluster's id from here."""
_SIGN: Final = re.compile("_{1,3}")
_SIGNS: Final = {"_": ".", "__": "_", "___": "-"}


class KafkaValues(NamedTuple):
    """Checked values of Kafka's keys."""

    values: Mapping[str, Given]
    """Those that are used, or that configs resolve to."""
    notes: tuple[KeyNote, ...]
    from_file: bool
    """A server.properties was read: whatever it must say has to be there."""


def gather(
    properties: Properties | None, environment: Mapping[str, str], overrides: Sequence[str]
) -> KafkaValues:
    """Return all values. `overrides` are texts of the form key=value. Raises SettingsError."""
    given: dict[str, Given] = {}
    notes: list[KeyNote] = []
    if properties is not None:
        given |= properties.values
        notes += [
            KeyNote(NoteKind.DUPLICATE, key, place, f"{kept} counts")
            for key, place, kept in properties.duplicates
        ]
        for name in sorted(environment):
            key = _key_of(name)
            if key is None:
                continue
            if rule_of(key).group is not KeyGroup.UNKNOWN or key.startswith(OWN):
                given[key] = Given(environment[name], Source.ENVIRONMENT, name)
            elif similar(key) is not None:
                # Others are for Kafka's own scripts, such as KAFKA_HEAP_OPTS.
                notes.append(KeyNote(NoteKind.UNKNOWN, key, name, _hint(key)))
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise SettingsError(f"--override is {override!r}; write key=value.")
        given[key.strip()] = Given(value, Source.COMMAND_LINE, "--override")
    return _checked(given, notes, from_file=properties is not None)


def _key_of(variable: str) -> str | None:
    """Return the key that a variable names; None: the variable is about something else."""
    if variable == _OF_CLUSTER:
        return CLUSTER_ID
    if not variable.startswith(_PREFIX):
        return None
    name = variable.removeprefix(_PREFIX).lower()
    return _SIGN.sub(lambda signs: _SIGNS[signs[0]], name)


def _checked(given: Mapping[str, Given], notes: list[KeyNote], *, from_file: bool) -> KafkaValues:
    values: dict[str, Given] = {}
    problems: list[str] = []
    roles = given.get("process.roles")
    only_controls = roles is not None and roles.value.strip() == "controller"
    for key, one in given.items():
        rule = rule_of(key)
        match rule.group:
            case KeyGroup.UNKNOWN if key.startswith(OWN):
                known = ", ".join(sorted(key for key in KEYS if key.startswith(OWN)))
                problems.append(f"{one.place}: there is no key {key}. Logberg's own are {known}.")
            case KeyGroup.UNKNOWN:
                notes.append(KeyNote(NoteKind.UNKNOWN, key, one.place, _hint(key)))
            case KeyGroup.REFUSED if one.value.strip() == rule.unless:
                pass
            case KeyGroup.REFUSED if rule.of_brokers and only_controls:
                notes.append(KeyNote(NoteKind.IGNORED, key, one.place, "only brokers use it"))
            case KeyGroup.REFUSED:
                problems.append(f"{one.place}: {key} is refused: {rule.why}.")
            case KeyGroup.IGNORED:
                notes.append(KeyNote(NoteKind.IGNORED, key, one.place, rule.why))
            case KeyGroup.USED | KeyGroup.CONFIG:
                values[key] = one
        if problem := _value_problem(key, one):
            problems.append(problem)
    if problems:
        raise SettingsError(" ".join(problems))
    return KafkaValues(values, tuple(notes), from_file)


def _hint(key: str) -> str:
    near = similar(key)
    return f"did you mean {near}?" if near else "Kafka has no such key"


def _value_problem(key: str, given: Given) -> str:
    known = definition_of(key)
    if known is None:
        return ""
    try:
        parse_value(key, given.value, known)
    except ConfigValueError as error:
        return f"{given.place}: {error}."
    return ""
