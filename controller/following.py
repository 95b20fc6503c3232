"""Others who follow a controller, such as the listener for Kafka's brokers.

Rule: a follower gets each event after the controller's own parts. The followers of the cluster's
controllers can also tell each other something (`Controller.tell_peers`).
"""

from typing import Final, Protocol

from ledger.ledger import Ledger
from metadata.image import MetadataImage

TOLD: Final = b"\x03"
"""The first byte of what followers tell each other.

A digest begins with 1, an announcement with 2, what is said about signed heads and their keys with
4 and 5, about keys of subjects with 7, a report of attempts with 10."""


class ControllerFollower(Protocol):
    """Gets events of a controller, on the loop, after its own parts. No method may raise."""

    def on_loaded(self, ledger: Ledger, image: MetadataImage) -> None:
        """An image was loaded, at a start or after a catch-up. What comes is applied to it."""

    def on_progress(self) -> None:
        """More is committed and applied."""

    def on_leader(self) -> None:
        """The leader or the epoch has changed, or this controller's part in it."""

    def on_told(self, node_id: int, data: bytes) -> None:
        """A voter's follower told this with `Controller.tell_peers`."""

    def on_stop(self) -> None:
        """The controller stops for good. Its files are closed next."""


class Followers:
    """All followers of one controller. Each event reaches them in the order of `add`."""

    def __init__(self) -> None:
        self._followers: list[ControllerFollower] = []

    def add(self, follower: ControllerFollower) -> None:
        """Send events to this follower, too."""
        self._followers.append(follower)

    def on_loaded(self, ledger: Ledger, image: MetadataImage) -> None:
        for follower in self._followers:
            follower.on_loaded(ledger, image)

    def on_progress(self) -> None:
        for follower in self._followers:
            follower.on_progress()

    def on_leader(self) -> None:
        for follower in self._followers:
            follower.on_leader()

    def on_told(self, node_id: int, data: bytes) -> None:
        for follower in self._followers:
            follower.on_told(node_id, data)

    def on_stop(self) -> None:
        for follower in self._followers:
            follower.on_stop()
