"""What an import would write, and what stands against it, while it is compared."""

from collections.abc import Iterable

from metadata.errors import LogbergError
from metadata.messages import CONFLICTS_SHOWN_MAX, ImportConflict
from metadata.records import Record


class ImportComparison:
    """Records to write, and conflicts."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.salted_hashes: list[bytes] = []
        self.conflicts: list[ImportConflict] = []
        self.conflict_count = 0
        self.same = 0
        self.expired = 0

    def write(self, records: Iterable[Record], salted_hashes: Iterable[bytes] = ()) -> None:
        """Note records that are missing, with the hashes of their sealed fields, in order."""
        self.records += records
        self.salted_hashes += salted_hashes

    def refuse(self, name: str, why: str | LogbergError) -> None:
        """Note a conflict."""
        self.conflict_count += 1
        if len(self.conflicts) < CONFLICTS_SHOWN_MAX:
            said = why.message if isinstance(why, LogbergError) else why
            self.conflicts.append(ImportConflict(name[:300], said[:500]))
