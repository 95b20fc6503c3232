"""`logberg acls role`: gives and takes roles, which are bundles of access control entries.

The controllers know no roles. A grant adds the entries that are missing, and a revocation removes
them, each as one change.
"""

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.failure import fail_for
from logberg.cli.output import print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from metadata.acl_roles import ROLES, RoleEntry
from metadata.messages.acls import AclDescription, AclEntry, AclFilter

_role = click.argument("role", type=click.Choice(list(ROLES)))
_principal = click.argument("principal")
_host = click.option(
    "--host",
    default="*",
    show_default=True,
    help="Only from this address, or range such as 10.0.0.0/8.",
)


@click.group("role", cls=SuggestingGroup)
def role_commands() -> None:
    """Give and take roles: bundles of entries.

    viewer sees the state. operator also changes topics, configs and quotas, and where replicas lie.
    admin does everything.
    """


@role_commands.command("grant")
@_role
@_principal
@_host
@change_options
def grant(
    *,
    role: str,
    principal: str,
    host: str,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Add the entries of a role: logberg acls role grant operator User:alice."""
    entries = [
        AclEntry(
            resource_type=entry.resource_type,
            resource_name=entry.name,
            principal=principal,
            operation=entry.operation,
            pattern_type=entry.pattern_type,
            host=host,
        )
        for entry in ROLES[role]
    ]
    reply = cluster.ask(lambda client: client.create_acls(*entries, **change.arguments()))
    added = sum(each.error is None and not each.existed for each in reply.acls)
    said = f"{principal} is {role}: {added} entries added (offset {reply.offset})"
    print_change(reply, output, said)
    fail_for(("", each.error) for each in reply.acls)


@role_commands.command("revoke")
@_role
@_principal
@_host
@change_options
def revoke(
    *,
    role: str,
    principal: str,
    host: str,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Remove the entries of a role: logberg acls role revoke operator User:alice.

    The entries of a smaller role in it stay: an operator who is none any more is still a viewer.
    """
    own = set(ROLES[role])
    kept = {entry for smaller in ROLES.values() if set(smaller) < own for entry in smaller}
    filters = [
        AclFilter(
            resource_type=entry.resource_type,
            resource_name=entry.name,
            pattern_type=entry.pattern_type,
            principal=principal,
            host=host,
            operation=entry.operation,
            permission_type="ALLOW",
        )
        for entry in ROLES[role]
        if entry not in kept
    ]
    reply = cluster.ask(lambda client: client.delete_acls(*filters, **change.arguments()))
    removed = sum(each.count for each in reply.filters)
    said = f"{principal} is no {role}: {removed} entries removed (offset {reply.offset})"
    print_change(reply, output, said)
    fail_for(("", each.error) for each in reply.filters)


@role_commands.command("list")
@reading_options
def list_roles(*, cluster: ClusterConnection, output: str) -> None:
    """List who has all entries of a role."""
    reply = cluster.ask(lambda client: client.acls(AclFilter(permission_type="ALLOW")))
    found = [
        {"principal": principal, "host": host, "role": role}
        for principal, host in sorted({(acl.principal, acl.host) for acl in reply.acls})
        for role in _roles_of(tuple(acl for acl in reply.acls if acl.principal == principal), host)
    ]
    if output == "json":
        print_json({"offset": reply.offset, "roles": found})
    elif not found:
        say("nobody has a role")
    else:
        rows = [(each["principal"], each["host"], each["role"]) for each in found]
        show(table(["principal", "host", "role"], rows))


def _roles_of(acls: tuple[AclDescription, ...], host: str) -> list[str]:
    """Return the roles all of whose entries are among these, for one host."""
    there = {
        RoleEntry(acl.operation, acl.resource_type, acl.resource_name, acl.pattern_type)
        for acl in acls
        if acl.host == host and acl.permission_type == "ALLOW"
    }
    return [role for role, entries in ROLES.items() if there.issuperset(entries)]
