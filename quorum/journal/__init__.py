"""Raft's own log on disk: entries not yet committed, truncations, term and vote.

Rule: private to the quorum, short-lived, synced before anything it promises leaves the node.
`frames` is the format, `chain` reads it, `opening` tells damage from a torn tail, `segments`
writes it, `journal` is the face towards PySyncObj and the guard. The `manifest` says where the
journal begins. Nothing here knows a peer or judges a vote. Door: this module, `damage`, `lineage`,
`manifest`, `manifest_store` and `opening`.
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
