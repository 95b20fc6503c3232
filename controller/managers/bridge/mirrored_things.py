"""What a comparison with the source found: records to write, and conflicts."""

from collections.abc import Iterable

from controller.managers.imports.comparison import ImportComparison
from metadata.records import Record


class MirroredThings(ImportComparison):
    """Collects records in the order of their replay.

    While the bridge begins, what was here and differs is a conflict.
    """

    def __init__(self, *, begins: bool) -> None:
        super().__init__()
        self._begins = begins

    def new(self, records: Iterable[Record], salted_hashes: Iterable[bytes] = ()) -> None:
        """Note what is missing here."""
        self.write(records, salted_hashes)

    def changed(
        self,
        name: str,
        why: str,
        records: Iterable[Record],
        salted_hashes: Iterable[bytes] = (),
    ) -> None:
        """Note what differs here."""
        if self._begins:
            self.refuse(name, why)
        else:
            self.write(records, salted_hashes)

    def gone(self, name: str, why: str, records: Iterable[Record]) -> None:
        """Note what only this cluster has."""
        self.changed(name, why, records)
