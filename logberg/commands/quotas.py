"""`logberg quotas`."""

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.failure import fail_for
from logberg.cli.option_group import option_group
from logberg.cli.output import print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages
from metadata.messages.quotas import (
    AlterQuotasReply,
    QuotaAlteration,
    QuotaEntity,
    QuotaEntityPart,
    QuotaOperation,
)

DEFAULT = "<default>"
"""As a name: the default of the type."""
ANY = "<any>"
"""In a filter: every name, and the default."""


@click.group("quotas", cls=SuggestingGroup)
def command() -> None:
    """Set, remove, list and resolve client quotas."""


_entity_options = option_group(
    click.option("--user", help=f"The user; '{DEFAULT}' is the default of all users."),
    click.option("--client-id", help=f"The client id; '{DEFAULT}' is the default."),
    click.option("--ip", help=f"The address; '{DEFAULT}' is the default."),
)


@command.command("set")
@click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE...")
@_entity_options
@change_options
def set_quotas(
    *,
    values: tuple[str, ...],
    user: str | None,
    client_id: str | None,
    ip: str | None,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Set quotas of a user, a client id, both together, or an address.

    Keys of users and client ids: producer_byte_rate, consumer_byte_rate, request_percentage,
    controller_mutation_rate. Of addresses: connection_creation_rate.
    """
    operations = [_parsed(value) for value in values]
    _alter(cluster, _entity(user, client_id, ip), operations, change, output)


@command.command("remove")
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@_entity_options
@change_options
def remove(
    *,
    keys: tuple[str, ...],
    user: str | None,
    client_id: str | None,
    ip: str | None,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Remove quotas of a user, a client id, both together, or an address."""
    operations = [QuotaOperation(key) for key in keys]
    _alter(cluster, _entity(user, client_id, ip), operations, change, output)


def _alter(
    cluster: ClusterConnection,
    entity: tuple[QuotaEntityPart, ...],
    operations: list[QuotaOperation],
    change: ChangeOptions,
    output: str,
) -> None:
    wanted = QuotaAlteration(entity, tuple(operations))
    reply: AlterQuotasReply = cluster.ask(
        lambda client: client.alter_quotas(wanted, **change.arguments())
    )
    changed = (
        f"{_words(entry.entity)}: changed (offset {reply.offset})"
        for entry in reply.entries
        if entry.error is None
    )
    print_change(reply, output, *changed)
    fail_for((_words(entry.entity), entry.error) for entry in reply.entries)


@command.command("list")
@click.option(
    "--user", help=f"Entities with this user; '{DEFAULT}': the default one; '{ANY}': all."
)
@click.option("--client-id", help="Entities with this client id, in the same way.")
@click.option("--ip", help="Entities with this address, in the same way.")
@click.option("--strict", is_flag=True, help="Only entities that have no part besides those named.")
@reading_options
def list_quotas(
    *,
    user: str | None,
    client_id: str | None,
    ip: str | None,
    strict: bool,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """List entities and their quotas."""
    query = {"strict": "true"} if strict else {}
    for name, given in (("user", user), ("clientId", client_id), ("ip", ip)):
        if given in (DEFAULT, ANY):
            query[f"{name}Match"] = given.strip("<>")
        elif given is not None:
            query[name] = given
    reply = cluster.ask(lambda client: client.quotas(query))
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.entries:
        say("no quotas")
    else:
        show(
            table(
                ["entity", "key", "value"],
                [
                    (_words(entry.entity), key, f"{value:g}")
                    for entry in reply.entries
                    for key, value in sorted(entry.values.items())
                ],
            )
        )


@command.command("resolve")
@click.option("--user", help="The client's user, without User:.")
@click.option("--client-id", help="The client's id.")
@click.option("--ip", help="The client's address.")
@reading_options
def resolve(
    *,
    user: str | None,
    client_id: str | None,
    ip: str | None,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Show which quotas apply to a client, and whose they are."""
    if user is None and client_id is None and ip is None:
        raise click.UsageError("give --user, --client-id or --ip")
    reply = cluster.ask(lambda client: client.resolve_quotas(user=user, client_id=client_id, ip=ip))
    if output == "json":
        print_json(reply)
    elif not reply.quotas:
        say("no quota applies")
    else:
        show(
            table(
                ["key", "value", "because of"],
                [(quota.key, f"{quota.value:g}", _words(quota.entity)) for quota in reply.quotas],
            )
        )


def _entity(user: str | None, client_id: str | None, ip: str | None) -> tuple[QuotaEntityPart, ...]:
    given = (("user", user), ("client-id", client_id), ("ip", ip))
    parts = tuple(
        QuotaEntityPart(kind, None if name == DEFAULT else name)
        for kind, name in given
        if name is not None
    )
    if not parts:
        raise click.UsageError("give --user, --client-id, both, or --ip")
    return parts


def _parsed(text: str) -> QuotaOperation:
    """Read `producer_byte_rate=1024`."""
    key, equals, value = text.partition("=")
    try:
        if equals and key:
            return QuotaOperation(key, float(value))
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r}: give a key and a number, such as producer_byte_rate=1024")


def _words(entity: tuple[QuotaEntity, ...]) -> str:
    return ", ".join(
        f"{part.entity_type} {DEFAULT if part.entity_name is None else part.entity_name}"
        for part in entity
    )
