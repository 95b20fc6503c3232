"""`logberg export`."""

import click

from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.output import print_json, say
from logberg.client.paged_lists import without_pages
from logberg.declared.writing import yaml_of
from metadata.messages.declared import DeclaredKind

_KINDS = tuple(kind.value for kind in DeclaredKind)


@click.command("export")
@click.option(
    "--kind",
    "asked",
    multiple=True,
    type=click.Choice(_KINDS),
    help="Only this kind. Repeatable.",
)
@click.option(
    "--assignments",
    is_flag=True,
    help="Write the brokers of each partition. Such a file fits only clusters with these brokers.",
)
@cluster_options
def command(
    *, asked: tuple[str, ...], assignments: bool, cluster: ClusterConnection, output: str
) -> None:
    """Write the cluster's state as a file for `logberg apply`, in YAML.

    All of it is from one offset. Passwords and other secrets are not in it.
    """
    kinds = tuple(kind for kind in _KINDS if not asked or kind in asked)
    reply = cluster.ask(
        lambda client: client.export(map(DeclaredKind, kinds), assignments=assignments)
    )
    if output == "json":
        print_json(without_pages(reply))
        return
    for line in yaml_of(reply, kinds):
        say(line)
