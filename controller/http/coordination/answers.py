"""Which function answers which route of coordination."""

from collections.abc import Mapping
from typing import Final

from controller.http.clients.asked import MakeChange, Read
from controller.http.coordination import changes, reads

CHANGES: Final[Mapping[str, MakeChange]] = {
    "open_session": changes.open_session,
    "end_session": changes.end_session,
    "enter": changes.enter,
    "change_entry": changes.change_entry,
    "leave": changes.leave,
    "break_grant": changes.break_grant,
    "commit_keys": changes.commit_keys,
}
READS: Final[Mapping[str, Read]] = {
    "list_sessions": reads.list_sessions,
    "list_entries": reads.list_entries,
    "get_key": reads.get_key,
    "list_keys": reads.list_keys,
    "coordination_limits": reads.coordination_limits,
}
