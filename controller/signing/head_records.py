"""Writes keys and signed heads into the log, while this controller leads (ADR 0087).

Rule: deciding checks the signatures; replay takes the records at their word. At most one decision
of each kind is under way, and what was refused or lost is asked for again at the next interval.
"""

from collections.abc import Callable, Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from controller.leader.decisions import Decision, Outcome, Written
from controller.leader.leader_duties import provenance_of_node
from controller.leader.proposer import Proposer
from controller.managers.head_keys import (
    heads_in_log,
    key_of,
    keys_without_voter,
    register_key,
    remove_keys,
    rotate_key,
    write_head,
)
from controller.result import Decide
from controller.signing.messages import KeyRotation
from ledger.merkle.heads import TreeHead
from metadata.image import MetadataImage
from metadata.records import HeadSignature

SIGN: Final = "SignHead"
REGISTER: Final = "RegisterHeadKey"
ROTATE: Final = "RotateHeadKey"
REMOVE: Final = "RemoveHeadKeys"


class HeadRecords:
    """Idle unless this controller is active."""

    def __init__(
        self,
        node_id: int,
        cluster_id: str,
        proposer: Proposer,
        image: Callable[[], MetadataImage],
        on_written: Callable[[], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`image`: the committed one. `on_written`: a key is in the log now, and may count."""
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._proposer = proposer
        self._image = image
        self._on_written = on_written
        self._log = log
        self._under_way: set[str] = set()
        self._leads = False

    def begin(self) -> None:
        """This controller is active now."""
        self._leads = True
        self._under_way.clear()

    def end(self) -> None:
        """This controller leads no more."""
        self._leads = False

    def look(self) -> None:
        """Something was committed: keys of those who vote no more go."""
        if self._leads and self._image().heads.keys and keys_without_voter(self._image()):
            self._submit(REMOVE, self._node_id, remove_keys)

    def key_seen(self, node_id: int, public: bytes) -> None:
        """A voter has signed with this key; the log may have none for it yet."""
        image, cluster_id = self._image(), self._cluster_id
        if self._leads and heads_in_log(image) and key_of(image, node_id) is None:
            self._submit(
                REGISTER,
                node_id,
                lambda pending: register_key(pending, cluster_id, node_id, public),
                self._on_written,
            )

    def rotated(self, node_id: int, told: KeyRotation) -> None:
        """A voter has drawn another key."""
        image, cluster_id = self._image(), self._cluster_id
        present = key_of(image, node_id)
        if self._leads and present is not None and present.public_key != told.public:
            self._submit(
                ROTATE,
                node_id,
                lambda pending: rotate_key(
                    pending,
                    cluster_id,
                    node_id,
                    told.public,
                    told.old_signature,
                    told.new_signature,
                ),
            )

    def signed(self, head: TreeHead, signatures: Callable[[], Sequence[HeadSignature]]) -> None:
        """A majority has signed. `signatures`: those that are known when it is decided."""
        newest = self._image().heads.newest
        if self._leads and (newest is None or newest.size < head.size):
            self._submit(
                SIGN, self._node_id, lambda pending: write_head(pending, head, signatures())
            )

    def _submit(
        self,
        operation: str,
        node_id: int,
        decide: Decide,
        on_written: Callable[[], None] = lambda: None,
    ) -> None:
        name = f"{operation}/{node_id}"
        if name in self._under_way or self._proposer.pending is None:
            return
        self._under_way.add(name)

        def done(outcome: Outcome) -> None:
            self._under_way.discard(name)
            if isinstance(outcome, Written) and outcome.wrote:
                if operation != SIGN:
                    self._log.info("head_key_written", operation=operation, controller=node_id)
                on_written()

        provenance = provenance_of_node(node_id)(operation)
        self._proposer.submit(Decision(decide, provenance, done, first=True))
