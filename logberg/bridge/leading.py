"""Lets this cluster lead in the place of ZooKeeper, and keeps ZooKeeper equal until it is left.

`Leading` takes over, writes back, finalises or rolls back. Rule: the claim in ZooKeeper comes first
and the mode here second, so that never two lead. On the way back it is the other way round.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from logberg.bridge.claim import Claim866, Claimant, ControllerClaim
from logberg.bridge.client_nodes import Opened
from logberg.bridge.following import BridgedQuorum, Follower
from logberg.bridge.live_tree import LiveTree
from logberg.bridge.node_changes import shown_changes
from logberg.bridge.source_state import SourceState, SourceStep, source_state
from logberg.bridge.write_back import ForeignWriteError, WriteBack, differences
from logberg.importing.source_error import SourceError
from logberg.importing.zookeeper_source import KazooModules
from metadata.image import MetadataImage
from metadata.messages.bridge import (
    BridgeModeName,
    LegacyBroker,
    SetBridgeModeReply,
    SetBridgeModeRequest,
)
from metadata.records import BridgeMode

_WAIT_S: Final = 0.5
"""How long one waits for a change in ZooKeeper before one looks for changes here."""
_SHOWN: Final = 20


class LedQuorum(BridgedQuorum, Protocol):
    """The controllers, as a bridge asks them that leads. All raise Failure."""

    def claimant(self) -> Claimant:
        """Return the active controller."""
        ...

    def image(self) -> MetadataImage:
        """Return the newest state."""
        ...

    def set_mode(self, request: SetBridgeModeRequest) -> SetBridgeModeReply:
        """Change who leads."""
        ...


class Leading:
    """One run of a bridge that leads, or ends."""

    def __init__(
        self,
        client: Any,
        kazoo: KazooModules,
        root: str,
        live: LiveTree,
        quorum: LedQuorum,
        opened: Opened,
        say: Callable[[str], None],
    ) -> None:
        """`opened` opens a SCRAM credential; `say` gets a line for each step."""
        self._client = client
        self._kazoo = kazoo
        self._root = root
        self._live = live
        self._quorum = quorum
        self._opened = opened
        self._say = say
        self._claims = ControllerClaim(client, kazoo, root)
        self._brokers: tuple[LegacyBroker, ...] = ()
        self._written = -1
        """The offset up to which everything is written back."""

    def take_over(self) -> WriteBack:
        """Claim ZooKeeper and lead, or go on leading. Raises SourceError, Failure."""
        known = self._quorum.described()
        if known.mode == "leading":
            claim = self._claims.held(known.claim_epoch)
            self._say(f"this cluster leads since controller epoch {claim.epoch}; going on")
        elif known.mode == "following":
            claim = self._claim()
        else:
            raise SourceError(f"the bridge is {known.mode}: begin with --follow")
        back = WriteBack(self._client, self._kazoo, self._root, self._live, claim)
        self.bring(back)
        return back

    def _claim(self) -> Claim866:
        """Claim, follow what was written until then, and lead."""
        follower = Follower(self._live, self._quorum, self._say)
        follower.begin()
        legacy = {each.broker_id for each in follower.brokers}
        claim = self._claims.take(self._quorum.claimant(), legacy.__contains__)
        follower.catch_up()
        self._set_mode("leading", claim.epoch)
        self._claims.note(claim, self._quorum.image().offset)
        self._say(
            f"this cluster leads: controller {claim.claimant.node_id}, controller epoch "
            f"{claim.epoch} in ZooKeeper. Changes here are written back"
        )
        return claim

    def run_once(self, back: WriteBack) -> bool:
        """Wait a moment, and write back what has changed. False: the bridge has ended.

        Raises SourceError, Failure.
        """
        self._live.wait(_WAIT_S)
        return self.bring(back)

    def bring(self, back: WriteBack) -> bool:
        """Write back what has changed. False: the bridge has ended. Raises SourceError, Failure."""
        state = source_state(back.look(), back.zxid)
        image = self._quorum.image()
        bridge = image.bridge.state
        if bridge is None or bridge.mode != BridgeMode.LEADING:
            return False
        if state.brokers != self._brokers:
            self._follow_brokers(state, bridge.revision)
        if image.offset != self._written:
            count = back.bring(image, self._opened)
            self._written = image.offset
            if count:
                self._say(f"offset {image.offset}: {count} nodes written (zxid {back.zxid})")
        return True

    def _follow_brokers(self, state: SourceState, reached: int) -> None:
        step = SourceStep((), (), (), state.brokers)
        state = state._replace(zxid=max(state.zxid, reached))
        self._quorum.follow(state, reached, step)
        self._brokers = state.brokers

    def finalize(self) -> None:
        """End the bridge for good. Raises SourceError if a difference is left, Failure."""
        known = self._quorum.described()
        if known.mode != "leading":
            raise SourceError(f"the bridge is {known.mode}: --take-over comes before --finalize")
        claim = self._claims.held(known.claim_epoch)
        tree, zxid = self._live.settled()
        left = differences(self._quorum.image(), tree, zxid, claim, self._opened).changes
        if left:
            raise SourceError(
                f"{len(left)} nodes differ, so the bridge stays: {shown_changes(left, _SHOWN)}. "
                "--take-over writes them"
            )
        self._set_mode("finalised")
        self._say("the bridge is finalised: changes here no longer reach ZooKeeper")

    def roll_back(self) -> None:
        """Let ZooKeeper lead alone again. Raises SourceError, Failure."""
        known = self._quorum.described()
        if known.mode == "leading":
            try:
                claim = self._claims.held(known.claim_epoch)
            except SourceError as error:
                self._say(f"{error}. So nothing is written there")
            else:
                try:
                    back = WriteBack(self._client, self._kazoo, self._root, self._live, claim)
                    back.bring(self._quorum.image(), self._opened)
                except ForeignWriteError as error:
                    self._say(f"{error}. What differs stays as it is there")
                self._claims.release(claim)
        elif known.mode != "following":
            raise SourceError(f"the bridge is {known.mode}: there is nothing to roll back")
        self._set_mode("none")
        self._say("ZooKeeper leads alone; what is here stays, and is followed no more")

    def _set_mode(self, mode: BridgeModeName, claim_epoch: int = -1) -> None:
        known = self._quorum.described()
        assert known.source is not None
        assert mode != "following"
        self._quorum.set_mode(SetBridgeModeRequest(mode, known.source, known.revision, claim_epoch))
