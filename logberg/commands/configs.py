"""`logberg configs`."""

from collections.abc import Iterable

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.key_and_value import key_and_value
from logberg.cli.output import note, print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages
from metadata.messages.configs import ConfigChange, ConfigEntry, ConfigOperation

_DEFAULT = "DEFAULT_CONFIG"
_TYPES = click.Choice(["topic", "broker", "group", "client-metrics"])
_type = click.argument("kind", type=_TYPES, metavar="TYPE")
_name = click.argument("name")
_pairs = click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE...")
_keys = click.argument("keys", nargs=-1, required=True, metavar="KEY...")


@click.group("configs", cls=SuggestingGroup)
def command() -> None:
    """Show and change configs.

    TYPE is topic, broker, group or client-metrics. The broker `default` stands for all brokers.
    """


@command.command("list")
@click.option("--type", "kind", type=_TYPES, help="Only resources of this type.")
@reading_options
def list_configs(*, kind: str | None, cluster: ClusterConnection, output: str) -> None:
    """List the resources that have configs of their own."""
    reply = cluster.ask(lambda client: client.config_resources(kind))
    if output == "json":
        print_json(without_pages(reply))
        return
    if not reply.resources:
        say("no configs")
        return
    rows = [(each.resource_type, each.resource_name, each.config_count) for each in reply.resources]
    show(table(["type", "name", "configs"], rows))


@command.command("describe")
@_type
@_name
@click.option("--all", "everything", is_flag=True, help="Show also keys that have Kafka's default.")
@reading_options
def describe(
    *, kind: str, name: str, everything: bool, cluster: ClusterConnection, output: str
) -> None:
    """Show the values that apply to a resource, and where they come from."""
    reply = cluster.ask(lambda client: client.configs(kind, name))
    if output == "json":
        print_json(reply)
        return
    if any(each.source.startswith(f"{_DEFAULT} ") for each in reply.configs):
        note(
            "the controllers' own settings of that time are not in the log: --server-properties "
            "FILE adds them. Without it, Kafka's defaults stand in their place"
        )
    shown = [each for each in reply.configs if everything or not _is_default(each)]
    if not shown:
        say(f"{kind} {name} has Kafka's defaults only; --all shows them")
        return
    show(table(["key", "value", "source"], [(e.name, _value(e), e.source) for e in shown]))


def _command_of_pairs(operation: ConfigOperation, text: str) -> None:
    """Make the command of an operation on pairs of keys and values."""

    @command.command(operation.value.lower(), help=text)
    @_type
    @_name
    @_pairs
    @change_options
    def alter(
        *,
        kind: str,
        name: str,
        pairs: tuple[str, ...],
        change: ChangeOptions,
        cluster: ClusterConnection,
        output: str,
    ) -> None:
        changes = [ConfigChange(*key_and_value(pair), operation) for pair in pairs]
        _alter(cluster, kind, name, changes, change, output)


_command_of_pairs(ConfigOperation.SET, "Set keys to new values: all of them, or none.")
_command_of_pairs(ConfigOperation.APPEND, "Add entries to keys whose values are lists.")
_command_of_pairs(ConfigOperation.SUBTRACT, "Remove entries from keys whose values are lists.")


@command.command("delete")
@_type
@_name
@_keys
@change_options
def delete(
    *,
    kind: str,
    name: str,
    keys: tuple[str, ...],
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Remove keys, so that their defaults apply."""
    changes = [ConfigChange(key, operation=ConfigOperation.DELETE) for key in keys]
    _alter(cluster, kind, name, changes, change, output)


def _alter(
    cluster: ClusterConnection,
    kind: str,
    name: str,
    changes: Iterable[ConfigChange],
    change: ChangeOptions,
    output: str,
) -> None:
    reply = cluster.ask(
        lambda client: client.alter_configs(kind, name, *changes, **change.arguments())
    )
    said = (
        f"changed {kind} {name}: {', '.join(resource.changed)} (offset {reply.offset})"
        if resource.changed
        else f"{kind} {name} has these values already"
        for resource in reply.resources
    )
    print_change(reply, output, *said)


def _is_default(entry: ConfigEntry) -> bool:
    """Whether it has Kafka's default; at a past moment the source says more behind that word."""
    return entry.source.partition(" ")[0] == _DEFAULT


def _value(entry: ConfigEntry) -> str:
    if entry.sensitive:
        return "(hidden)"
    return "-" if entry.value is None else entry.value
