"""`logberg acls`."""

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.failure import Failure, fail_for
from logberg.cli.option_group import option_group
from logberg.cli.output import print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.client.paged_lists import without_pages
from logberg.commands.acl_roles import role_commands
from metadata.messages.acls import AclDescription, AclEntry, AclFilter, CheckAclReply

CLUSTER = "kafka-cluster"
_principal = click.argument("principal")
_operations = click.argument("operations")
_resource = click.argument("resource", metavar="TYPE:NAME")


@click.group("acls", cls=SuggestingGroup)
def command() -> None:
    """Add, remove, list and check access control entries, and roles."""


command.add_command(role_commands)


@command.command("add")
@_principal
@_operations
@_resource
@click.option(
    "--deny", is_flag=True, help="Deny the operations. An entry that denies beats those that allow."
)
@click.option("--prefixed", is_flag=True, help="For all resources whose name begins with NAME.")
@click.option(
    "--host",
    default="*",
    show_default=True,
    help="Only from this address, or range such as 10.0.0.0/8.",
)
@change_options
def add(
    *,
    principal: str,
    operations: str,
    resource: str,
    deny: bool,
    prefixed: bool,
    host: str,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Let a principal do something: logberg acls add User:alice read,describe topic:orders.

    OPERATIONS are Kafka's, separated by commas: read, write, create, delete, alter, describe,
    cluster_action, describe_configs, alter_configs, idempotent_write, create_tokens,
    describe_tokens, all. TYPE is topic, group, cluster, transactional_id, delegation_token or
    user. The name * is every resource of the type. Cluster without a name is Kafka's cluster.
    Logberg's own are cluster:quorum, cluster:audit, cluster:placement, cluster:bridge, and names
    that begin with cluster:coordination: such as cluster:coordination:key:/app.
    """
    kind, name = _parsed(resource)
    entries = [
        AclEntry(
            resource_type=kind,
            resource_name=name,
            principal=principal,
            operation=operation.strip().upper(),
            pattern_type="PREFIXED" if prefixed else "LITERAL",
            host=host,
            permission_type="DENY" if deny else "ALLOW",
        )
        for operation in operations.split(",")
    ]
    reply = cluster.ask(lambda client: client.create_acls(*entries, **change.arguments()))
    made = f"added (offset {reply.offset})"
    said = (
        f"{entry.operation} on {resource} for {principal}: "
        f"{'is there already' if added.existed else made}, id {added.id}"
        for entry, added in zip(entries, reply.acls, strict=False)
        if added.error is None
    )
    print_change(reply, output, *said)
    fail_for(("", each.error) for each in reply.acls)


_filter_options = option_group(
    click.option("--principal", help="Only entries of this principal."),
    click.option("--resource", metavar="TYPE[:NAME]", help="Only for this resource."),
    click.option(
        "--pattern",
        type=click.Choice(["any", "literal", "prefixed", "match"]),
        default="any",
        show_default=True,
        help="Only this kind of pattern; match: every pattern that NAME matches.",
    ),
    click.option("--operation", default="any", help="Only this operation."),
    click.option(
        "--permission",
        type=click.Choice(["any", "allow", "deny"]),
        default="any",
        help="Only entries that allow, or that deny.",
    ),
    click.option("--host", help="Only entries for this host."),
)


@command.command("remove")
@_filter_options
@click.option(
    "--all", "everything", is_flag=True, help="Remove every entry; only without a filter."
)
@change_options
def remove(
    *,
    principal: str | None,
    resource: str | None,
    pattern: str,
    operation: str,
    permission: str,
    host: str | None,
    everything: bool,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Remove the entries that match the options."""
    wanted = _wanted(principal, resource, pattern, operation, permission, host)
    if wanted == AclFilter() and not everything:
        raise click.UsageError("this would remove every entry: name some, or say --all")
    reply = cluster.ask(lambda client: client.delete_acls(wanted, **change.arguments()))
    print_change(reply, output)
    for each in reply.filters:
        if each.error is None and not reply.dry_run and output != "json":
            say(f"removed {each.count} entries (offset {reply.offset})")
            _show(each.acls)
    fail_for(("", each.error) for each in reply.filters)


@command.command("list")
@_filter_options
@reading_options
def list_acls(
    *,
    principal: str | None,
    resource: str | None,
    pattern: str,
    operation: str,
    permission: str,
    host: str | None,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """List the entries that match the options."""
    wanted = _wanted(principal, resource, pattern, operation, permission, host)
    reply = cluster.ask(lambda client: client.acls(wanted))
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.acls:
        say("no access control entries")
    else:
        _show(reply.acls)


@command.command("check")
@_principal
@click.argument("operation")
@_resource
@click.option("--host", default="*", show_default=True, help="The address of the caller.")
@reading_options
def check(
    *,
    principal: str,
    operation: str,
    resource: str,
    host: str,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Show whether a principal may do something, and which entry decides. Exits 1 if it may not."""
    kind, name = _parsed(resource)
    reply = cluster.ask(
        lambda client: client.check_acl(principal, operation.upper(), kind, name, host=host)
    )
    if output == "json":
        print_json(reply)
    else:
        say(f"{'allowed' if reply.allowed else 'denied'}: {_reason(reply)}")
        if reply.acl is not None:
            _show((reply.acl,))
    if not reply.allowed:
        raise Failure(f"{principal} may not {operation.lower()} {resource}")


def _reason(reply: CheckAclReply) -> str:
    return {
        "super user": "the principal is one of the controllers' super_users",
        "deny": "this entry denies it",
        "allow": "this entry allows it, and none denies it",
        "own right": "a broker's own credentials have it, for requests of that broker",
        "no entry matches": "there are entries for the resource, and none is for this",
        "no entry for the resource": "no entry is about the resource; allow_if_no_acl decides",
    }.get(reply.reason, reply.reason)


def _show(acls: tuple[AclDescription, ...]) -> None:
    rows = sorted(
        (
            acl.resource_type,
            acl.resource_name,
            acl.pattern_type,
            acl.principal,
            acl.permission_type,
            acl.operation,
            acl.host,
            acl.id,
        )
        for acl in acls
    )
    if rows:
        head = ["type", "name", "pattern", "principal", "permission", "operation", "host", "id"]
        show(table(head, rows))


def _wanted(
    principal: str | None,
    resource: str | None,
    pattern: str,
    operation: str,
    permission: str,
    host: str | None,
) -> AclFilter:
    kind, _, name = (resource or "any").partition(":")
    return AclFilter(
        resource_type=kind.upper(),
        resource_name=name or None,
        pattern_type=pattern.upper(),
        principal=principal,
        host=host,
        operation=operation.upper(),
        permission_type=permission.upper(),
    )


def _parsed(resource: str) -> tuple[str, str]:
    """Read `topic:orders`."""
    kind, _, name = resource.partition(":")
    kind = kind.upper()
    if not name and kind == "CLUSTER":
        name = CLUSTER
    if not name:
        raise click.BadParameter(f"{resource!r}: give a type and a name, such as topic:orders")
    return kind, name
