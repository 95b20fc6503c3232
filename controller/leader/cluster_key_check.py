"""Compares this controller's cluster key with the one that the log names (ADR 0031, 0039).

Rule: a controller with another key says so as soon as it has read the log, and never leads. It
votes, and serves reads. A controller without a key may lead, and refuses what needs the key.
"""

from collections.abc import Callable, Mapping

from structlog.typing import FilteringBoundLogger

from controller.managers.sealing_key import naming_records, wrong_key
from metadata.image import MetadataImage
from metadata.records import ClusterKeyRecord
from metadata.sealing import ClusterKey


class ClusterKeyCheck:
    """Keeps what is wrong with this controller's key."""

    def __init__(
        self,
        key: ClusterKey | None,
        replaces: str,
        image: Callable[[], MetadataImage],
        log: FilteringBoundLogger,
    ) -> None:
        """`replaces`: the id of a lost key, in hex, or empty. `image`: the committed one."""
        self._key = key
        self._replaces = replaces
        self._image = image
        self._log = log
        self._seen: object = None
        self.problem = ""
        """Why this controller must not lead; empty: it may."""

    def look(self) -> str:
        """The committed image may have changed: return the problem, and log a new one."""
        image = self._image()
        if self._seen is not image.quorum:
            self._seen = image.quorum
            problem = wrong_key(self._key, image, self._replaces)
            if problem and problem != self.problem:
                self._log.error("cluster_key_differs", reason=problem)
            self.problem = problem
        return self.problem

    def records(
        self, image: MetadataImage, levels: Mapping[str, int]
    ) -> tuple[ClusterKeyRecord, ...]:
        """Return the record with which the log names this controller's key, if it lacks that.

        `levels`: the feature levels that hold for the record.
        """
        return naming_records(self._key, image, levels, self._replaces)
