"""`logberg features`."""

import click

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.feature_levels import feature_and_level
from logberg.cli.output import print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from metadata.messages.brokers import FeatureDescription
from metadata.messages.features import FeatureNode, FeatureState, FeatureUpdate, UpgradeType

_wanted = click.argument("wanted", nargs=-1, required=True, metavar="FEATURE=LEVEL...")


@click.group("features", cls=SuggestingGroup)
def command() -> None:
    """Show, raise and lower feature levels."""


@command.command("list")
@reading_options
def list_features(*, cluster: ClusterConnection, output: str) -> None:
    """Show the cluster's levels, and what each controller and broker supports."""
    reply = cluster.ask(lambda client: client.features())
    if output == "json":
        print_json(reply)
        return
    if reply.note:
        say(f"the log has no feature levels yet: {reply.note}")
    names = [feature.name for feature in reply.features]
    show(
        table(
            ["feature", "finalised", "this build supports"],
            [(f.name, _level(f), _range(f)) for f in reply.features],
        )
    )
    show(
        table(
            ["node", *names],
            [(f"{node.kind} {node.node_id}", *_row(node, names)) for node in reply.nodes],
        )
    )


@command.command("upgrade")
@_wanted
@change_options
def upgrade(
    *, wanted: tuple[str, ...], change: ChangeOptions, cluster: ClusterConnection, output: str
) -> None:
    """Raise features to levels that every controller and broker supports."""
    _update(cluster, wanted, UpgradeType.UPGRADE, change, output)


@command.command("downgrade")
@_wanted
@change_options
def downgrade(
    *, wanted: tuple[str, ...], change: ChangeOptions, cluster: ClusterConnection, output: str
) -> None:
    """Lower features to levels at which no metadata is lost. Other levels are refused."""
    _update(cluster, wanted, UpgradeType.SAFE_DOWNGRADE, change, output)


def _update(
    cluster: ClusterConnection,
    wanted: tuple[str, ...],
    kind: UpgradeType,
    change: ChangeOptions,
    output: str,
) -> None:
    updates = [_parsed(text, kind) for text in wanted]
    reply = cluster.ask(lambda client: client.update_features(*updates, **change.arguments()))
    said = (
        f"{feature.name} is at {feature.level} already"
        if feature.level_before == feature.level
        else f"{feature.name}: {feature.level_before or 'not finalised'} -> {feature.level} "
        f"(offset {reply.offset})"
        for feature in reply.features
    )
    print_change(reply, output, *said)


def _parsed(text: str, kind: UpgradeType) -> FeatureUpdate:
    """Read `metadata.version=23`."""
    return FeatureUpdate(*feature_and_level(text), kind)


def _level(feature: FeatureState) -> str:
    if not feature.level:
        return "-"
    name = feature.level_name
    return f"{feature.level} ({name})" if name else str(feature.level)


def _row(node: FeatureNode, names: list[str]) -> list[str]:
    if not node.registered:
        return ["not registered"] * len(names)
    ranges = {feature.name: _range(feature) for feature in node.features}
    return [ranges.get(name, "-") for name in names]


def _range(feature: FeatureState | FeatureDescription) -> str:
    low, high = feature.min_supported_version, feature.max_supported_version
    return "-" if high <= 0 else f"{low} to {high}"
