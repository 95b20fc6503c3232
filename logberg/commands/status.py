"""`logberg status`: what each controller says of itself, and the brokers."""

import click

from logberg.cli.connection_options import ClusterConnection, cluster_options
from logberg.cli.failure import Failure
from logberg.cli.output import Sheet, print_json, show, styled, table
from logberg.client.cluster_view import ClusterView, ControllerView, observe


@click.command("status")
@cluster_options
def command(*, cluster: ClusterConnection, output: str) -> None:
    """Show the state of the cluster. Exit 1 when no controller is active."""
    found = cluster.ask(lambda client: observe(client, cluster.urls))
    if output == "json":
        print_json(found.to_json())
    else:
        draw(found)
    if found.active is None:
        raise Failure(
            "no controller is active: a majority must run and reach each other. "
            "`logberg quorum status` on each shows why."
        )


def draw(found: ClusterView) -> None:
    """Print what was observed."""
    show(*tables(found))


def tables(found: ClusterView) -> list[Sheet | str]:
    """The observation as tables: controllers, then brokers."""
    title = f"cluster {found.cluster_id}" + (
        f"   active controller {found.active}   epoch {found.epoch}"
        if found.active is not None
        else ""
    )
    controllers = table(
        ["controller", "role", "epoch", "log end", "checkpoint", "topics", "partitions", "note"],
        [_row(view) for view in found.controllers],
        title,
    )
    brokers = table(
        ["broker", "state", "epoch", "leads", "replicas", "applied", "heard", "listeners"],
        [
            (
                broker.broker_id,
                styled(broker.state),
                broker.broker_epoch,
                broker.leaders,
                broker.replicas,
                "-" if broker.applied_offset is None else broker.applied_offset,
                _ago(broker.last_contact_ms),
                ", ".join(f"{e.host}:{e.port}" for e in broker.endpoints),
            )
            for broker in found.brokers
        ],
    )
    repairs = [
        f"controller {view.node_id}: {sentence}"
        for view in found.controllers
        if view.status is not None
        for sentence in view.status.repairs
    ]
    notes = repairs + _bootstrap_admins(found)
    parts: list[Sheet | str] = [controllers, "", *notes] if notes else [controllers]
    return [*parts, "", brokers] if found.brokers else parts


def _bootstrap_admins(found: ClusterView) -> list[str]:
    """Say once that the administrator of the first start may still do everything."""
    known = {
        view.status.bootstrap_admin
        for view in found.controllers
        if view.status is not None and view.status.authorization == "on"
    }
    return [
        f"{principal}, the administrator of the first start, may still do everything: see "
        "logberg doctor"
        for principal in sorted(known - {""})
    ]


def _row(view: ControllerView) -> tuple[object, ...]:
    status, role = view.status, styled("active" if view.active else view.role)
    if status is None:
        return view.name, role, *("-" * 5), view.note
    return (
        view.name,
        role,
        status.leader_epoch,
        status.log_end,
        _offset_of(status.newest_snapshot),
        status.topics,
        status.partitions,
        status.note,
    )


def _ago(milliseconds: int | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds / 1000:.1f} s ago"


def _offset_of(snapshot: str | None) -> str:
    """The offset in a snapshot's id, such as 00000000000000000042-0000000003."""
    if not snapshot:
        return "-"
    offset = snapshot.partition("-")[0]
    return str(int(offset)) if offset.isdecimal() else snapshot
