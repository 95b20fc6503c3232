"""A quorum of nobody: what is proposed counts as committed.

Rule: it does only what a leader asks of its quorum. The owner takes what was proposed, and may let
the leader lose its office in the middle of a change.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NoReturn

from quorum.api import (
    LeaderAndEpoch,
    Mark,
    NotLeaderError,
    PeerFile,
    QuorumStatus,
    TransferRefusedError,
    Voter,
    VoterChangeRefusedError,
    VoterSet,
)


class LoneQuorum:
    """The `quorum.api.Quorum` of one rehearsed controller."""

    def __init__(
        self,
        node_id: int,
        voters: Callable[[], tuple[Voter, ...]],
        on_proposed: Callable[[bytes], None],
        unsent: Callable[[], int],
    ) -> None:
        self._node_id = node_id
        self._voters = voters
        self._on_proposed = on_proposed
        self._unsent = unsent
        self.proposals_left: int | None = None
        """After so many more batches it leads no more; None: it stays."""
        self.announced = b""
        """What the controller says of itself to its peers."""

    def propose(self, payload: bytes) -> None:
        if self.proposals_left is not None:
            if not self.proposals_left:
                raise NotLeaderError(None, 0)
            self.proposals_left -= 1
        self._on_proposed(payload)

    def unsent(self) -> int:
        return self._unsent()

    def voters(self) -> tuple[Voter, ...]:
        return self._voters()

    def voter_set(self) -> VoterSet:
        return VoterSet(self._voters(), 0, True)

    def announce(self, data: bytes) -> None:
        self.announced = data

    def tell(self, data: bytes) -> None:
        """There are no peers."""

    def read_index(self, on_ready: Callable[[bool], None]) -> None:
        on_ready(True)

    def resign(self, reason: str) -> None:
        raise AssertionError(f"a rehearsed leader resigned: {reason}")

    def start(self) -> Mark | None:
        return None

    def stop(self) -> None:
        """There is nothing to stop."""

    def set_digest(self, digest: bytes) -> None:
        """Nobody compares states."""

    # Nothing below is asked for: a rehearsed leader has no peers and no files.

    def change_voters(self, voters: Sequence[Voter], payload: bytes) -> None:
        _unasked()

    def refusal_of(self, voters: Sequence[Voter]) -> VoterChangeRefusedError | None:
        _unasked()

    def candidate(self, node_id: int) -> Voter | None:
        _unasked()

    def refusal_to_hand_over(self, node_id: int) -> TransferRefusedError | None:
        _unasked()

    def hand_over(self, node_id: int, reason: str) -> None:
        _unasked()

    def leader_and_epoch(self) -> LeaderAndEpoch:
        _unasked()

    def current_at(self) -> float | None:
        _unasked()

    def compact(self, mark: Mark, on_done: Callable[[bool], None]) -> None:
        _unasked()

    def resumes_at(self) -> Mark | None:
        _unasked()

    def caught_up(self, mark: Mark) -> None:
        _unasked()

    def out_of_reach(self, mark: Mark) -> None:
        _unasked()

    def send_contacts(self, node_id: int, contacts: bytes) -> bool:
        _unasked()

    def send_confirmed(self, node_id: int, confirmed: bytes) -> bool:
        _unasked()

    def list_files(
        self,
        node_id: int,
        folder: str,
        on_reply: Callable[[Sequence[tuple[str, int]] | None], None],
    ) -> None:
        _unasked()

    def read_file(
        self,
        node_id: int,
        name: str,
        position: int,
        length: int,
        on_reply: Callable[[PeerFile | None], None],
    ) -> None:
        _unasked()

    def scrub(self) -> Generator[int, None, None]:
        _unasked()

    def status(self) -> QuorumStatus:
        _unasked()


def _unasked() -> NoReturn:
    raise AssertionError("no rehearsed controller asks for this")
