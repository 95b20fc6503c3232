"""Harms Raft's journal, votes, synced notes and the manifest, then opens them as a node does.

Rule: what was synced is there, or the journal reports `damage` (the node doesn't vote), or it
refuses to open. Only bytes after the synced position may be lost. Then the content must equal what
a kill at some earlier moment would have left; to find that, the same files are opened cut at each
byte after that position.
"""

from collections.abc import Sequence

from quorum.journal import DamagedError, RaftJournal, WrongFolderError
from quorum.journal.chain import SegmentFile, read_chain, read_files
from quorum.journal.frames import JournalFrameKind, find_frames
from quorum.journal.manifest import FILE as MANIFEST
from quorum.journal.manifest import JournalManifest, decode_manifest
from quorum.journal.manifest_copies import COPY
from quorum.journal.manifest_store import ManifestStore
from quorum.journal.opening import UNKNOWN_VOTE
from quorum.journal.state import ENTRY_HEAD, Entry
from quorum.journal.synced_notes import NAME as SYNCED_NOTES
from tests.flips.memory import Files, MemoryDisk
from tests.flips.verdicts import DETECTED, HARMLESS, SILENT, Verdict, unclean
from tests.unit.quorum.journal.rig import LOG, Rig, fill, manifest_at

FOLDER = "journal/"
CLUSTER = "cluster-a"
Content = tuple[object, ...]


class JournalCase:
    """One node's journal and manifest, and what they say unharmed."""

    def __init__(
        self,
        file: str,
        files: Files,
        targets: Sequence[str],
        *,
        synced: int,
        cluster_id: str = CLUSTER,
        node_id: int = 1,
        others: Files | None = None,
    ) -> None:
        self.file = file
        self.files = files
        self.targets = list(targets)
        self.others = others or {}
        self._cluster_id = cluster_id
        self._node_id = node_id
        self._judged = 0
        self._whole = self._content(files)
        self._ever = self._ever_written()
        self._ends = self._ends_behind(synced)
        assert self._whole in self._ends

    def judge(self, harmed: Files, *, thorough: bool = False) -> Verdict:
        """Open harmed files, and hold what is read against what was written.

        Now and then, and always when `thorough`, twice: the next opening must read the same.
        """
        disk = MemoryDisk(harmed)
        self._judged += 1
        try:
            journal, manifest, restored = self._open(disk)
        except DamagedError:
            return Verdict(DETECTED, "refused as damaged")
        except WrongFolderError:
            return Verdict(DETECTED, "refused as another's")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            return unclean(error)
        verdict = self._read(journal, manifest)
        if restored and verdict.kind == HARMLESS:
            verdict = Verdict(DETECTED, "written again from the other copy of the manifest")
        if verdict.good and (thorough or self._judged % 8 == 0):
            return self._read_again(disk, journal, manifest, verdict)
        return verdict

    def _read(self, journal: RaftJournal, manifest: JournalManifest | None) -> Verdict:
        if journal.damage:
            return self._read_damaged(journal)
        content = _content_of(journal, manifest)
        if content == self._whole:
            return Verdict(HARMLESS, "the same is read")
        if content not in self._ends:
            return Verdict(SILENT, _difference(self._whole, content))
        if journal.opened.torn is not None:
            return Verdict(DETECTED, "a torn tail that was never synced, cut")
        return Verdict(HARMLESS, "as if killed before it wrote what was never synced")

    def _read_damaged(self, journal: RaftJournal) -> Verdict:
        kept: list[Entry] = list(journal[:])
        if any(entry not in self._ever for entry in kept):
            return Verdict(SILENT, "damaged, and with entries that nobody wrote")
        if any(entry[1] != journal.first_index + place for place, entry in enumerate(kept)):
            return Verdict(SILENT, "damaged, and with a hole among its entries")
        if journal.voted_for != UNKNOWN_VOTE:
            return Verdict(SILENT, "damaged, and with a vote")
        return Verdict(DETECTED, "damaged: it does not vote")

    def _read_again(
        self,
        disk: MemoryDisk,
        first: RaftJournal,
        manifest: JournalManifest | None,
        verdict: Verdict,
    ) -> Verdict:
        """What an opening leaves behind is read the same by the next one."""
        before = (_content_of(first, manifest), first.damage)
        try:
            again, manifest, _ = self._open(disk)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            return unclean(error)
        if (_content_of(again, manifest), again.damage) != before:
            return Verdict(SILENT, "the next opening reads something else")
        return verdict

    def _open(
        self, disk: MemoryDisk
    ) -> tuple[RaftJournal, JournalManifest | None, tuple[str, ...]]:
        """As `QuorumNode.start` does."""
        store = ManifestStore(disk, on_failed=_fail, log=LOG)
        manifest = store.load()
        journal = RaftJournal.open(
            disk,
            cluster_id=self._cluster_id,
            node_id=self._node_id,
            new_directory_id=b"\xee" * 16,
            manifest=manifest,
            on_durable=lambda: None,
            on_failed=_fail,
            log=LOG,
        )
        return journal, manifest, store.restored

    def _content(self, files: Files) -> Content:
        journal, manifest, _ = self._open(MemoryDisk(files))
        assert not journal.damage
        return _content_of(journal, manifest)

    def _ever_written(self) -> set[Entry]:
        ever: set[Entry] = set()
        for file in self._segments():
            assert file.opening is not None
            seed = file.opening.identity.seed(file.sequence)
            for found in find_frames(file.data, 0, seed):
                if found.kind == JournalFrameKind.ENTRY and found.body is not None:
                    index, term = ENTRY_HEAD.unpack_from(found.body)
                    ever.add((found.body[ENTRY_HEAD.size :], index, term))
        if MANIFEST in self.files:
            manifest = decode_manifest(self.files[MANIFEST])
            ever |= {manifest.first, manifest.second}
        return ever

    def _ends_behind(self, synced: int) -> list[Content]:
        """What a kill would have left at each moment since the last sync."""
        segments = self._segments()
        files, ends = dict(self.files), list[Content]()
        assert read_chain(segments).end >= synced
        while True:
            last = segments.pop()
            assert last.opening is not None
            begun = last.base <= synced
            for length in range(synced - last.shift if begun else 0, len(last.data) + 1):
                content = self._content({**files, last.name: last.data[:length]})
                if content not in ends:
                    ends.append(content)
            if begun:
                return ends
            del files[last.name]

    def _segments(self) -> list[SegmentFile]:
        return read_files(MemoryDisk(self.files), self._cluster_id, self._node_id)


def _fail(error: OSError) -> None:
    raise AssertionError(f"the disk of memory failed: {error}")


def _content_of(journal: RaftJournal, manifest: JournalManifest | None) -> Content:
    return (
        journal.directory_id,
        list(journal[:]),
        (journal.term, journal.voted_for),
        journal.commit_index,
        journal.formation,
        None if manifest is None else (manifest.mark, manifest.voters),
    )


_NAMES = ("directory id", "entries", "vote", "commit index", "formation", "manifest")


def _difference(whole: Content, content: Content) -> str:
    parts = zip(_NAMES, whole, content, strict=True)
    differing = [name for name, ours, theirs in parts if ours != theirs]
    return f"without a word another {', '.join(differing)}"


# -- files, as the product writes them -------------------------------------------------------------


def _scripted(node_id: int, *, segment_bytes: int, stopped: bool) -> tuple[Rig, int]:
    """Votes, entries, a truncation, a compaction; stopped in order, or killed with a tail."""
    rig = Rig(node_id, segment_bytes=segment_bytes, node_id=node_id)
    journal, store = rig.open(), rig.store()
    journal.set_formation(b"who the voters were")
    for term in (1, 2, 3, 4):
        journal.set_term(term, f"{term}@dir")
        journal.sync()
        rig.settle()
        fill(journal, 4 * term - 3, 4 * term, term)
        if term == 2:
            journal.delete_from(6)
            fill(journal, 7, 8, term)
        journal.sync()
        rig.settle()
        journal.set_commit_index(4 * term - 1)
        journal.on_second()
    store.offer(manifest_at(journal, 7), lambda _: None)
    rig.settle()
    journal.delete_before(5)
    journal.sync()
    rig.settle()
    if stopped:
        rig.stop(journal)
    else:
        journal.set_term(5, "2@dir")
        fill(journal, 17, 19, 5)
        journal.set_commit_index(16)
        journal.on_second()
    return rig, journal.durable_position


def scripted_journal(*, stopped: bool, segment_bytes: int) -> JournalCase:
    """A small journal; a twin of another node's gives the bytes that go astray."""
    rig, synced = _scripted(1, segment_bytes=segment_bytes, stopped=stopped)
    twin, _ = _scripted(2, segment_bytes=segment_bytes, stopped=stopped)
    files = rig.files()
    others = {f"node 2's {name}": data for name, data in twin.files().items()}
    segments = [name for name in files if name.startswith(FOLDER) and name != SYNCED_NOTES]
    return JournalCase("journal", files, segments, synced=synced, others=others)


def beside(case: JournalCase, file: str, target: str, others: Files | None = None) -> JournalCase:
    """The same folder, with another of its files harmed."""
    again = object.__new__(JournalCase)
    again.__dict__ |= case.__dict__
    again.file, again.targets, again.others = file, [target], others or {}
    return again


def votes() -> JournalCase:
    """A journal that holds little but terms and votes."""
    rig = Rig()
    journal = rig.open()
    journal.set_formation(b"who the voters were")
    fill(journal, 1, 2)
    for term in range(2, 14):
        journal.set_term(term, None if term % 3 == 0 else f"{term % 3}@directory")
        if term % 2:
            journal.sync()
            rig.settle()
    journal.sync()
    rig.settle()
    files = rig.files()
    (segment,) = (name for name in files if name.endswith(".wal"))
    return JournalCase("vote", files, [segment], synced=journal.durable_position)


def synced_notes() -> JournalCase:
    """The synced notes of a small journal."""
    return beside(scripted_journal(stopped=False, segment_bytes=1 << 20), "witness", SYNCED_NOTES)


def manifest() -> JournalCase:
    """The manifest of a small journal without its copy; of yesterday, and of another node."""
    case = scripted_journal(stopped=True, segment_bytes=400)
    alone = beside(case, "manifest", MANIFEST, case.others)
    alone.files = {name: data for name, data in case.files.items() if name != COPY}
    return alone


def manifest_with_its_copy() -> JournalCase:
    """The same with the copy beside it, which puts it right."""
    case = scripted_journal(stopped=True, segment_bytes=400)
    return beside(case, "manifest", MANIFEST, case.others)


def copy_of_the_manifest() -> JournalCase:
    """The copy."""
    case = scripted_journal(stopped=True, segment_bytes=400)
    return beside(case, "manifest", COPY, case.others)
