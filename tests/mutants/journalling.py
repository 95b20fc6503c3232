"""Mutants of the journal: its syncs, checks and cuts, and their order."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives

_AT_ONCE = "lambda _, error: self._one_done(error)"

JOURNALLING = (
    Mutant(
        "nothing waits for the disk",
        "1, I5",
        "Votes and acknowledgements leave before what they promise is durable.",
        (Patch("quorum.guard.outbox.Outbox.is_durable", gives(True)),),
        searched_in("quorum", "power"),
    ),
    Mutant(
        "ack before the entries are durable",
        "1, I5",
        "A follower acknowledges what its disk may lose.",
        (Patch("quorum.guard.following.Following.position_promised", gives(0)),),
        searched_in("quorum", "power"),
    ),
    Mutant(
        "no fsync",
        "1, I5",
        "The journal says that it is durable without a sync.",
        (
            Patch(
                "quorum.journal.segments.SegmentWriter._start_sync",
                edited(
                    (
                        "self._disk.sync(self._file, self._one_done)",
                        f"self._disk.in_background(lambda: None, {_AT_ONCE})",
                    ),
                ),
            ),
        ),
        searched_in("quorum", "power"),
    ),
    Mutant(
        "folder not synced behind a new segment",
        "1, I5",
        "A segment is durable and its name is not.",
        (
            Patch(
                "quorum.journal.segments.SegmentWriter._start_sync",
                edited(("partial(self._disk.sync_folder, FOLDER)", "lambda: None")),
            ),
        ),
        searched_in("quorum", "power", nodes=1) + searched_in("quorum", "power", "lag", nodes=3),
    ),
    Mutant(
        "folder not synced at opening",
        "1, I5",
        "A name that a killed process gave is relied on before it is durable.",
        (
            Patch(
                "quorum.journal.journal.open_journal",
                edited(("disk.sync_folder(FOLDER)", "pass")),
            ),
        ),
        searched_in("quorum", "power", nodes=1),
    ),
    Mutant(
        "a failed sync is taken for a good one",
        "1, 10",
        "EIO of a sync is ignored: what was written may be gone.",
        (
            Patch(
                "quorum.journal.segments.SegmentWriter._one_done",
                edited(("if error is not None:", "if False:")),
            ),
        ),
        searched_in("cluster", "errors"),
    ),
    Mutant(
        "journal's bodies unchecked",
        "6, I10",
        "The checksum of a frame's body is not compared.",
        (
            Patch(
                "quorum.journal.frames.JournalFrameReader.__iter__",
                edited(("if crc(body) != body_crc:", "if False:")),
            ),
        ),
        searched_in("quorum", "power", "damage"),
    ),
    Mutant(
        "journal's headers unchecked",
        "6, I10",
        "The checksum of a frame's header is not compared: bytes of another folder pass.",
        (
            Patch(
                "quorum.journal.frames.JournalFrameReader.__iter__",
                edited((" or extend(seed, data[offset : start - 4]) != header_crc", "")),
            ),
        ),
        searched_in("quorum", "power", "damage"),
    ),
    Mutant(
        "journal's torn tail not cut",
        "1, 6, I5",
        "New frames are appended behind the torn ones, where no reader will reach them.",
        (
            Patch(
                "quorum.journal.journal.open_journal",
                edited(
                    ("if chain.problem is None and chain.end == synced:", "if True:"),
                ),
            ),
        ),
        searched_in("quorum", "power", nodes=1) + searched_in("quorum", "power"),
    ),
    Mutant(
        "damage taken for a torn tail",
        "6, I3, I5",
        "Bytes that were durable and are bad are cut, and the node votes on.",
        (
            Patch(
                "quorum.journal.opening.judge",
                edited(
                    ("if chain.end >= synced:", "if True:"),
                    ("if problem.illegal or chain.end < synced:", "if False:"),
                ),
            ),
            Patch(
                "quorum.journal.journal.open_journal",
                edited(
                    (
                        "damage, torn = judge(chain, synced)",
                        "synced = min(synced, chain.end)\n    damage, torn = judge(chain, synced)",
                    ),
                ),
            ),
        ),
        searched_in("quorum", "damage", "drawn"),
    ),
    Mutant(
        "manifest durable after the journal is cut",
        "1, I5, I13",
        "The core forgets entries while the manifest that stands for them is on its way.",
        (
            Patch(
                "quorum.journal.manifest_store.ManifestStore._write",
                edited(
                    (
                        "    self._writing = manifest\n",
                        (
                            "    self._writing = manifest\n"
                            "    if report:\n"
                            "        self._to_report = manifest.first[1]\n"
                        ),
                    )
                ),
            ),
        ),
        searched_in("quorum", "lag", "power"),
    ),
    Mutant(
        "manifest's checksum unchecked",
        "6, I10",
        "A manifest with a flipped bit is believed.",
        (
            Patch(
                "quorum.journal.manifest.decode_manifest",
                edited(("if google_crc32c.value(body) != crc:", "if False:")),
            ),
        ),
        searched_in("quorum", "damage"),
    ),
    Mutant(
        "a damaged manifest's copy is not looked for",
        "6",
        "A node ends for good with a damaged manifest, though its copy and its journal are whole.",
        (
            Patch(
                "quorum.journal.manifest_copies._choose",
                edited(
                    ("return copy if isinstance(copy, JournalManifest) else None", "return None")
                ),
            ),
        ),
    ),
    Mutant(
        "the manifest has no copy",
        "6",
        "The core forgets entries when one of the two files is durable.",
        (
            Patch(
                "quorum.journal.manifest_store.write_manifest",
                edited(("    disk.replace(COPY, data)\n", "")),
            ),
        ),
    ),
    Mutant(
        "a copy of the manifest is not put right",
        "6",
        "What is damaged or old at a start stays so, and the next damage takes the other.",
        (Patch("quorum.journal.manifest_copies._write_again", gives(None)),),
    ),
    Mutant(
        "a copy of another folder's manifest is believed",
        "6",
        "The newest of the two is taken, whosever it is.",
        (
            Patch(
                "quorum.journal.manifest_copies._choose",
                edited((" or _whose(copy) != _whose(primary)", "")),
            ),
        ),
    ),
    Mutant(
        "a later release's manifest is written over",
        "9",
        "What this release can't read counts as damaged, and an older copy takes its place.",
        (
            Patch(
                "quorum.journal.manifest_copies._find",
                edited(("    except LaterFormatError:\n        raise\n", "")),
            ),
        ),
    ),
    Mutant(
        "segments of another folder are read",
        "6",
        "A folder of another node, or mixed of two, is not refused.",
        (Patch("quorum.journal.chain.refuse_stranger", gives(None)),),
    ),
    Mutant(
        "no seam needed where all was durable",
        "6, I5, I10",
        "Synced notes or a segment of another time, put back, passes for the line.",
        (Patch("quorum.journal.opening.is_seam", gives(True)),),
    ),
    Mutant(
        "a file's answer of an earlier life",
        "6",
        "The numbers of requests for files begin at one in each life.",
        (
            Patch(
                "quorum.peers.files.FileExchange.__init__",
                edited(
                    (
                        "context.journal.history.lineage.incarnation[-_NUMBER_BYTES:]",
                        "bytes(_NUMBER_BYTES)",
                    ),
                ),
            ),
        ),
    ),
)
