"""`logberg import zookeeper --follow`, `--take-over`, `--finalize` and `--roll-back`."""

from collections.abc import Callable

import msgspec

from logberg.bridge.following import Follower
from logberg.bridge.live_tree import LiveTree
from logberg.bridge.source_state import SourceState, SourceStep
from logberg.cli.connection_options import ChangeOptions, ClusterConnection
from logberg.cli.failure import Failure
from logberg.cli.interrupt import noting_interrupt
from logberg.cli.output import print_line, say
from logberg.importing.source_error import SourceError
from logberg.importing.zookeeper_source import ZooKeeperSource
from metadata.messages.bridge import (
    DescribeBridgeReply,
    FollowSourceReply,
    SetBridgeModeReply,
    SetBridgeModeRequest,
)


class BridgeSaid(msgspec.Struct, frozen=True):
    """A line of progress, with `--output json`."""

    said: str


class AskedControllers:
    """The controllers, asked by this command."""

    def __init__(self, cluster: ClusterConnection, source: str, change: ChangeOptions) -> None:
        """`source`: its URL without credentials."""
        self._cluster = cluster
        self._source = source
        self._change = change

    def described(self) -> DescribeBridgeReply:
        """Return how far the bridge has come. Raises Failure."""
        return self._cluster.ask(lambda client: client.bridge())

    def follow(self, state: SourceState, from_revision: int, step: SourceStep) -> FollowSourceReply:
        """Make a step. Raises Failure."""
        return self._cluster.ask(
            lambda client: client.follow_source(
                self._source,
                state.cluster_id,
                from_revision,
                state.zxid,
                step.records,
                complete=step.complete,
                topics_gone=step.topics_gone,
                brokers=step.brokers,
                reason=self._reason(f"bridge from {self._source} at zxid {state.zxid}"),
                dry_run=self._change.dry_run,
            )
        )

    def set_mode(self, request: SetBridgeModeRequest) -> SetBridgeModeReply:
        """Change who leads. Raises Failure."""
        return self._cluster.ask(
            lambda client: client.set_bridge_mode(
                request, reason=self._change.reason, dry_run=self._change.dry_run
            )
        )

    def _reason(self, what: str) -> str:
        return f"{what}: {self._change.reason}" if self._change.reason else what


def follow(url: str, change: ChangeOptions, cluster: ClusterConnection, output: str) -> None:
    """Follow ZooKeeper until Ctrl-C; a dry run makes the first step only. Raises Failure."""

    def run() -> None:
        source = ZooKeeperSource(url, cluster.deadline_s)
        with noting_interrupt() as look, source.session() as (client, kazoo):
            tree = LiveTree(client, kazoo, source.root, cluster.deadline_s)
            follower = Follower(
                tree, AskedControllers(cluster, source.name, change), _sayer(output)
            )
            follower.begin()
            try:
                while not change.dry_run:
                    look()
                    follower.run_once()
            except KeyboardInterrupt:
                _sayer(output)(
                    f"stopped at zxid {follower.reached}; ZooKeeper leads on, and others change "
                    "nothing of it here. Start the command again to go on"
                )

    _or_fail(run)


def _sayer(output: str) -> Callable[[str], None]:
    def as_json(line: str) -> None:
        print_line(BridgeSaid(line))

    return as_json if output == "json" else say


def _or_fail(run: Callable[[], None]) -> None:
    try:
        run()
    except SourceError as error:
        raise Failure(str(error)) from None
