"""`logberg import zookeeper --follow`, `--take-over`, `--finalize` and `--roll-back`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec

from ledger.errors import LedgerError
from logberg.bridge.claim import Claimant
from logberg.bridge.client_nodes import Opened, without_key
from logberg.bridge.following import Follower
from logberg.bridge.leading import Leading
from logberg.bridge.live_tree import LiveTree, LostConnectionError
from logberg.bridge.quorum_images import QuorumImages
from logberg.bridge.source_state import SourceState, SourceStep
from logberg.bridge.write_back import WriteBack
from logberg.cli.connection_options import ChangeOptions, ClusterConnection
from logberg.cli.failure import Failure
from logberg.cli.interrupt import noting_interrupt
from logberg.cli.option_group import option_group
from logberg.cli.output import print_line, say
from logberg.client.cluster_key_file import read_cluster_key, with_fetched_keys
from logberg.importing.source_error import SourceError
from logberg.importing.zookeeper_source import KazooModules, ZooKeeperSource
from metadata.image import MetadataImage
from metadata.messages.bridge import (
    DescribeBridgeReply,
    FollowSourceReply,
    SetBridgeModeReply,
    SetBridgeModeRequest,
)
from metadata.messages.erasure import SubjectKeysReply
from metadata.records import UserScramCredentialRecord
from metadata.sealed_blocks import SealingError, number_of_block
from metadata.sealed_places import scram_place
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeysError
from runtime.disk.secret_file import SecretFileError


class BridgeSaid(msgspec.Struct, frozen=True):
    """A line of progress, with `--output json`."""

    said: str


class BridgeOptions(NamedTuple):
    """What a run of the bridge is told."""

    url: str
    change: ChangeOptions
    cluster: ClusterConnection
    output: str
    cluster_key: Path | None = None


class AskedControllers:
    """The controllers, asked by this command."""

    def __init__(self, options: BridgeOptions, source: str) -> None:
        """`source`: its URL without credentials."""
        self._cluster = options.cluster
        self._change = options.change
        self._source = source
        self._images = QuorumImages(options.cluster)

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
        reason = self._reason(f"bridge to {self._source}: {request.mode}")
        return self._cluster.ask(lambda client: client.set_bridge_mode(request, reason=reason))

    def claimant(self) -> Claimant:
        """Return the active controller. Raises Failure."""
        status = self._cluster.ask(lambda client: client.status())
        return Claimant(status.node_id, status.leader_epoch)

    def image(self) -> MetadataImage:
        """Return the newest state. Raises Failure, LedgerError."""
        return self._images.latest()

    def _reason(self, what: str) -> str:
        return f"{what}: {self._change.reason}" if self._change.reason else what


class _Connected(NamedTuple):
    """A session with ZooKeeper, and the tree that it keeps."""

    client: Any
    kazoo: KazooModules
    live: LiveTree
    root: str
    quorum: AskedControllers


def follow(options: BridgeOptions) -> None:
    """Follow ZooKeeper until Ctrl-C; a dry run makes the first step only. Raises Failure."""
    said = _sayer(options.output)
    with _connected(options) as with_source, noting_interrupt() as look:
        follower = Follower(with_source.live, with_source.quorum, said)
        follower.begin()
        try:
            while not options.change.dry_run:
                look()
                follower.run_once()
        except KeyboardInterrupt:
            said(
                f"stopped at zxid {follower.reached}; ZooKeeper leads on, and others change "
                "nothing of it here. Start the command again to go on"
            )


def take_over(options: BridgeOptions) -> None:
    """Lead, and write back until Ctrl-C or the bridge's end. Raises Failure."""
    said = _sayer(options.output)
    with _connected(options) as with_source, noting_interrupt() as look:
        leading = _leading(with_source, options, said)
        back = leading.take_over()
        try:
            _lead(leading, back, look, said)
        except KeyboardInterrupt:
            said(
                "stopped; this cluster leads on, but changes aren't written back until the "
                "command is started again"
            )


def _lead(
    leading: Leading, back: WriteBack, look: Callable[[], None], said: Callable[[str], None]
) -> None:
    while True:
        look()
        try:
            if not leading.run_once(back):
                said("the bridge has ended")
                return
        except LostConnectionError as error:
            said(f"{error}; waiting for ZooKeeper")


def finalize(options: BridgeOptions) -> None:
    """End the bridge for good. Raises Failure while a difference is left."""
    with _connected(options) as with_source:
        _leading(with_source, options, _sayer(options.output)).finalize()


def roll_back(options: BridgeOptions) -> None:
    """Let ZooKeeper lead alone again. Raises Failure."""
    with _connected(options) as with_source:
        _leading(with_source, options, _sayer(options.output)).roll_back()


def _leading(
    with_source: _Connected, options: BridgeOptions, said: Callable[[str], None]
) -> Leading:
    return Leading(
        with_source.client,
        with_source.kazoo,
        with_source.root,
        with_source.live,
        with_source.quorum,
        _opener(options),
        said,
    )


@contextmanager
def _connected(options: BridgeOptions) -> Iterator[_Connected]:
    """Connect to ZooKeeper. What fails in the body ends the command with its sentence."""
    timeout_s = options.cluster.deadline_s
    try:
        source = ZooKeeperSource(options.url, timeout_s)
        with source.session() as (client, kazoo):
            live = LiveTree(client, kazoo, source.root, timeout_s)
            quorum = AskedControllers(options, source.name)
            try:
                yield _Connected(client, kazoo, live, source.root, quorum)
            except kazoo.exceptions.KazooException as error:
                raise SourceError(f"{source.name}: {type(error).__name__}") from None
    except (SourceError, LedgerError) as error:
        raise Failure(str(error)) from None


def _opener(options: BridgeOptions) -> Opened:
    """Return what opens credentials with the cluster key in a file. Raises Failure."""
    path = options.cluster_key
    if path is None:
        return without_key
    try:
        key = read_cluster_key(path)
    except SecretFileError as error:
        raise Failure(str(error)) from None

    def opened(sealed: UserScramCredentialRecord) -> UserScramCredentialRecord:
        try:
            opening = key
            if number_of_block(sealed.stored_key) is not None:
                # Not kept: a user may be erased at any time.
                opening = _with_subject_keys(key, options)
            stored, server = (
                opening.open(scram_place(sealed.name, sealed.mechanism, field), block)
                for field, block in (
                    ("storedKey", sealed.stored_key),
                    ("serverKey", sealed.server_key),
                )
            )
        except (SealingError, SubjectKeysError) as error:
            raise SourceError(f"user {sealed.name}: {error}") from None
        return msgspec.structs.replace(sealed, stored_key=stored, server_key=server)

    return opened


def _sayer(output: str) -> Callable[[str], None]:
    def as_json(line: str) -> None:
        print_line(BridgeSaid(line))

    return as_json if output == "json" else say


_RUNS: Final = {
    "follow": follow,
    "take-over": take_over,
    "finalize": finalize,
    "roll-back": roll_back,
}

BRIDGE_OPTIONS: Final = option_group(
    click.option(
        "--follow",
        "bridge",
        flag_value="follow",
        help="ZooKeeper leads on: bring each of its changes here, until Ctrl-C. Nobody else "
        "changes here what is followed.",
    ),
    click.option(
        "--take-over",
        "bridge",
        flag_value="take-over",
        help="This cluster leads: claim ZooKeeper's controller, and write each change back there, "
        "until Ctrl-C.",
    ),
    click.option(
        "--finalize",
        "bridge",
        flag_value="finalize",
        help="Leave ZooKeeper for good. Refused while it differs from this cluster.",
    ),
    click.option(
        "--roll-back",
        "bridge",
        flag_value="roll-back",
        help="Give the claim back: ZooKeeper leads alone, as before --follow.",
    ),
    click.option(
        "--cluster-key",
        type=click.Path(path_type=Path),
        help="The file of the controllers' cluster key, to write changed SCRAM users back.",
    ),
)


def run_bridge(what: str, options: BridgeOptions) -> None:
    """Run one part of the bridge. Raises Failure, UsageError."""
    if options.change.dry_run and what != "follow":
        raise click.UsageError("--dry-run shows an import, or the first step of --follow")
    _RUNS[what](options)


def _with_subject_keys(key: ClusterKey, options: BridgeOptions) -> ClusterKey:
    """Return the key with the keys of subjects that the controllers have now.

    Raises Failure, SealingError, SubjectKeysError.
    """
    reply = options.cluster.ask(lambda client: client.get("/v1/subject-keys", SubjectKeysReply))
    return with_fetched_keys(key, reply)
