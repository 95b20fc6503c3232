"""From the files, variables and options of a node to its checked settings.

There are two forms of files: our own TOML, and Kafka's server.properties, which has that ending. A
node may have one of each. The order, the strongest first:

1. options of the command line: `--override`, `--with-broker`, `--insecure-network`;
2. variables of the environment, `KAFKA_…`, which count only beside a server.properties;
3. the TOML file;
4. server.properties;
5. defaults.

Rule: everything is checked before anything starts, and SIGHUP reads the same sources again.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from logberg.processes.settings.broker_settings import BrokerSettings, check_broker
from logberg.processes.settings.combined_settings import check_beside
from logberg.processes.settings.controller_checks import check_controller
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.processes.settings.key_notes import KeyNote
from logberg.processes.settings.server_properties.sources import gather
from logberg.processes.settings.server_properties.syntax import Source, read_properties
from logberg.processes.settings.server_properties.translation import (
    BROKER,
    CONTROLLER,
    KAFKAS_DEFAULTS,
    TranslatedSetting,
    Translation,
)
from logberg.processes.settings.settings_files import SettingsError, convert, load, read_toml

T = TypeVar("T", bound=msgspec.Struct)
KAFKAS_ENDING: Final = ".properties"


class NodeOptions(NamedTuple):
    """What the command line says."""

    files: tuple[Path, ...]
    overrides: tuple[str, ...] = ()
    """Of Kafka's keys, as key=value."""
    insecure_network: bool = False
    with_broker: bool = False


class LoadedController(NamedTuple):
    """A controller's checked settings."""

    settings: ControllerSettings
    file: Path
    """Relative paths in the settings are relative to it."""
    notes: tuple[KeyNote, ...]
    """What the log says about keys, once it is there."""


class LoadedBroker(NamedTuple):
    """An agent's checked settings; the fields are as in `LoadedController`."""

    settings: BrokerSettings
    file: Path
    notes: tuple[KeyNote, ...]


def load_controller(
    options: NodeOptions, environment: Mapping[str, str] = os.environ
) -> LoadedController:
    """Return a controller's settings. Raises SettingsError, with every problem."""
    files = _Files(options.files)
    settings, notes = _controller(files, options, environment)
    if options.insecure_network:
        settings = settings.trusting_the_network()
    if options.with_broker:
        settings = settings.with_broker()
    if problems := check_controller(settings) or check_beside(settings):
        raise SettingsError(f"{files.names}: {' '.join(problems)}")
    return LoadedController(settings, files.base, notes)


def load_broker(options: NodeOptions, environment: Mapping[str, str] = os.environ) -> LoadedBroker:
    """Return the settings of an agent in a process of its own. Raises SettingsError."""
    files = _Files(options.files)
    settings, notes = _broker(files, options, environment)
    if options.insecure_network:
        settings = msgspec.structs.replace(settings, insecure_network=True)
    if problems := check_broker(settings):
        raise SettingsError(f"{files.names}: {' '.join(problems)}")
    return LoadedBroker(settings, files.base, notes)


def _controller(
    files: "_Files", options: NodeOptions, environment: Mapping[str, str]
) -> tuple[ControllerSettings, tuple[KeyNote, ...]]:
    if files.kafka is None and not options.overrides:
        return load(files.base, ControllerSettings), ()
    translation, notes = files.translate(options, environment)
    table = files.table()
    roles = translation.roles()
    if roles == {BROKER}:
        translation.problems.append(
            "process.roles is broker; start the agent by `logberg broker`, or a node with both "
            "roles by process.roles=broker,controller."
        )
    with_broker = options.with_broker or BROKER in roles or "broker" in table
    translation.controller(with_broker=with_broker)
    if with_broker:
        table.setdefault("broker", {})
    return files.settle(table, translation, ControllerSettings), notes


def _broker(
    files: "_Files", options: NodeOptions, environment: Mapping[str, str]
) -> tuple[BrokerSettings, tuple[KeyNote, ...]]:
    if files.kafka is None and not options.overrides:
        return load(files.base, BrokerSettings), ()
    translation, notes = files.translate(options, environment)
    if CONTROLLER in translation.roles():
        translation.problems.append(
            "process.roles has controller; start the node by `logberg controller`, which also runs "
            "the agent of a node with both roles."
        )
    translation.broker()
    return files.settle(files.table(), translation, BrokerSettings), notes


class _Files:
    """The files of one node: one of each form at most."""

    def __init__(self, files: Iterable[Path]) -> None:
        given = list(files)
        kafka = [path for path in given if path.suffix == KAFKAS_ENDING]
        toml = [path for path in given if path.suffix != KAFKAS_ENDING]
        if len(kafka) > 1 or len(toml) > 1 or not given:
            raise SettingsError(
                "name one TOML file, one server.properties, or one of each with --config; not "
                f"{', '.join(map(str, given)) or 'none'}."
            )
        self.kafka = kafka[0] if kafka else None
        self.toml = toml[0] if toml else None
        self.base = toml[0] if toml else kafka[0]
        self.names = " and ".join(map(str, (*toml, *kafka)))

    def translate(
        self, options: NodeOptions, environment: Mapping[str, str]
    ) -> tuple[Translation, tuple[KeyNote, ...]]:
        properties = None if self.kafka is None else read_properties(self.kafka)
        kafka = gather(properties, environment, options.overrides)
        folder = (self.kafka or self.base).parent
        return Translation(kafka, folder), kafka.notes

    def table(self) -> dict[str, Any]:
        return {} if self.toml is None else read_toml(self.toml)

    def settle(self, table: dict[str, Any], translation: Translation, kind: type[T]) -> T:
        """Return what all sources say together."""
        _merge(table, translation.found)
        if self.kafka is not None:
            known = {field.name for field in msgspec.structs.fields(kind)}
            for name, value in KAFKAS_DEFAULTS.items():
                if name in known:
                    table.setdefault(name, value)
        problems = translation.problems + _missing(table, kind, known=bool(translation.problems))
        if problems:
            raise SettingsError(f"{self.names}: {' '.join(problems)}")
        return convert(table, kind, self.names)


def _merge(table: dict[str, Any], found: Iterable[TranslatedSetting]) -> None:
    """Add what Kafka's keys say. A key of the TOML file stays, unless a stronger source has it."""
    for setting in found:
        *outer, last = setting.path
        into = table
        for name in outer:
            into = into.setdefault(name, {})
        if last not in into or setting.source is not Source.FILE:
            into[last] = setting.value


_HINTS: Final = {
    "cluster_id": "write logberg.cluster.id; `logberg cluster-id` draws one.",
    "node_id": "write it.",
    "broker_id": "write it.",
    "http": "write logberg.broker.http=host:port, where the agent listens.",
    "controllers": "write controller.quorum.voters.",
    "data": "write log.dirs.",
}
_KAFKAS_NAMES: Final = {"node_id": "node.id", "broker_id": "node.id"}


def _missing(table: dict[str, Any], kind: type[msgspec.Struct], *, known: bool) -> list[str]:
    """Say which required settings nothing gives; nothing if other problems may be the reason."""
    if known:
        return []
    return [
        f"{_KAFKAS_NAMES.get(field.name, field.name)} is missing: "
        f"{_HINTS.get(field.name, 'write it.')}"
        for field in msgspec.structs.fields(kind)
        if field.required and field.name not in table
    ]
