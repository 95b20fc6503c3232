"""Raft's own log on disk: entries that may not be committed yet, truncations, term and vote.

Rule: the journal is private to the quorum, and short. It is synced before any promise that rests on
it leaves the node.

`frames` is the format, `chain` reads it, `segments` writes it, and `opening` distinguishes damage
from a torn tail. `journal` is what the guard and the core use. The `manifest` says where the
journal begins. `inspection` reads the files of a stopped node, and `installing` replaces them.
Nothing here knows a peer. Door: this module, `compaction`, `damage`, `installing`, `lineage`,
`manifest`, `manifest_store` and `opening`; for `quorum.recovery` also `identity` and `inspection`.
"""

from quorum.journal.damage import DamagedError, JournalDamage, TornTail, WrongFolderError
from quorum.journal.journal import RaftJournal
from quorum.journal.log_view import LogView
from quorum.journal.state import Entry, Known, VotedFor

__all__ = [
    "DamagedError",
    "Entry",
    "JournalDamage",
    "Known",
    "LogView",
    "RaftJournal",
    "TornTail",
    "VotedFor",
    "WrongFolderError",
]
