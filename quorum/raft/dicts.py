"""Translates between our messages and PySyncObj's dicts.

PySyncObj has one dict for three of our messages: `append_entries` carries entries, or a dump, or
neither. The keys that it holds say which.
"""

from typing import Any

from quorum.raft.messages import (
    AppendEntries,
    AppendReply,
    Forward,
    FromCore,
    Heartbeat,
    InstallSnapshot,
    RequestVote,
    TimeoutNow,
    ToCore,
    VoteGranted,
)

Dict = dict[str, Any]
WORDS = frozenset(
    {
        "append_entries",
        "serialized",
        "next_node_idx",
        "request_vote",
        "response_vote",
        "timeout_now",
        "prevLogIdx",
        "prevLogTerm",
        "entries",
        "commit_index",
        "reset",
        "success",
        "last_log_index",
        "last_log_term",
    }
)
"""The strings that these dicts consist of. `core_world.check_core` looks for them in the library.
"""


def to_dict(message: ToCore) -> Dict:
    """Return the dict that the core reads."""
    match message:
        case AppendEntries(term, commit_index, previous, previous_term, entries):
            return _append(
                term,
                commit_index,
                prevLogIdx=previous,
                prevLogTerm=previous_term,
                entries=entries,
            )
        case Heartbeat(term, commit_index):
            return _append(term, commit_index)
        case InstallSnapshot(term, commit_index, manifest):
            # One chunk, which is the first and the last.
            return _append(term, commit_index, serialized=(manifest, True, True))
        case AppendReply(next_index, success, reset):
            return {
                "type": "next_node_idx",
                "next_node_idx": next_index,
                "success": success,
                "reset": reset,
            }
        case RequestVote(term, last_index, last_term):
            return {
                "type": "request_vote",
                "term": term,
                "last_log_index": last_index,
                "last_log_term": last_term,
            }
        case VoteGranted(term):
            return {"type": "response_vote", "term": term}
        case TimeoutNow(term):
            return {"type": "timeout_now", "term": term}


def _append(term: int, commit_index: int, **more: Any) -> Dict:
    return {"type": "append_entries", "term": term, "commit_index": commit_index, **more}


def from_dict(message: Dict) -> FromCore:
    """Return what the core sent. A kind that we don't use is a `Forward`."""
    match message["type"]:
        case "append_entries":
            return _from_append(message)
        case "next_node_idx":
            return AppendReply(message["next_node_idx"], message["success"], message["reset"])
        case "request_vote":
            return RequestVote(message["term"], message["last_log_index"], message["last_log_term"])
        case "response_vote":
            return VoteGranted(message["term"])
        case _:
            return Forward()


def _from_append(message: Dict) -> AppendEntries | InstallSnapshot:
    term, commit_index = message["term"], message["commit_index"]
    if "serialized" in message:
        # `CoreDump.getTransmissionData` always returns the whole manifest.
        return InstallSnapshot(term, commit_index, message["serialized"][0])
    return AppendEntries(
        term, commit_index, message["prevLogIdx"], message["prevLogTerm"], message["entries"]
    )
