"""Reads what a stopped node's journal and manifest hold, for a person who must decide.

Rule: nothing in the folder is changed, not even what an opening would repair. What is said of
damage is what the next opening would say (`opening.judge`).
"""

from typing import NamedTuple

from quorum.journal.chain import Chain, read_chain, read_files
from quorum.journal.damage import DamagedError
from quorum.journal.identity import JournalIdentity
from quorum.journal.manifest import FILE, JournalManifest, decode_manifest
from quorum.journal.manifest_copies import COPY
from quorum.journal.opening import judge
from quorum.journal.state import JournalState
from quorum.journal.synced_notes import noted_position
from runtime.disk.interface import Disk


class JournalFound(NamedTuple):
    """What the files of a journal hold."""

    identity: JournalIdentity
    state: JournalState
    """Up to the first bad byte. Its newest incarnation has ended."""
    damage: str
    """What is damaged, in a sentence: now, or before and not repaired. Empty: nothing."""
    torn: str
    """The torn tail that a crash left, in a sentence; empty: there is none."""
    manifest: JournalManifest | None
    """The newest of its two copies that can be read."""
    manifest_problem: str
    """Why no copy of the manifest can be read; empty: one can be, or there is none."""
    highest_term: int
    last_sequence: int


def inspect_journal(disk: Disk) -> JournalFound | None:
    """Return what a journal holds; None where there is no segment.

    Raises DamagedError if it can't be said whose journal it is, OSError.
    """
    files = read_files(disk, None, None)
    if not files:
        return None
    chain = read_chain(files)
    manifest, problem = _manifest_in(disk)
    synced = max(chain.synced, noted_position(disk, chain.identity))
    if manifest is not None and manifest.directory_id == chain.identity.directory_id:
        synced = max(synced, manifest.journal_position)
    damage, torn = judge(chain, synced)
    state = chain.state
    state.lineage.end(chain.end)
    return JournalFound(
        chain.identity,
        state,
        str(damage) if damage is not None else state.damage or _gap(chain, manifest, problem),
        str(torn or ""),
        manifest,
        problem,
        chain.highest_term,
        chain.last_sequence,
    )


def _manifest_in(disk: Disk) -> tuple[JournalManifest | None, str]:
    found: list[JournalManifest] = []
    problem = ""
    for name in (FILE, COPY):
        if disk.exists(name):
            try:
                found.append(decode_manifest(disk.read(name), name))
            except DamagedError as error:
                problem = problem or str(error)
    if not found:
        return None, problem
    return max(found, key=lambda each: each.mark.index), ""


def _gap(chain: Chain, manifest: JournalManifest | None, problem: str) -> str:
    """Say that the journal begins behind its manifest, or has lost it; empty: neither."""
    first = chain.state.first_index or chain.state.absent_to + 1
    begins = 1 if manifest is None else manifest.first[1]
    # A catch-up that a crash interrupted leaves a journal that ends before its manifest.
    behind = manifest is not None and chain.state.last_index < manifest.second[1]
    if first <= begins or behind:
        return ""
    return problem or f"entries before {first} are missing"
