"""Mutants of ledger, checkpoints and catch-up: what a node keeps, verifies and moves into place."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives, instead

_CRC_IS_WRONG = 'if _crc32c(frame[:-CRC_BYTES]) != int.from_bytes(frame[-CRC_BYTES:], "big"):'

KEEPING = (
    Mutant(
        "ledger not synced before the journal forgets",
        "1, I5",
        "The journal is cut at a mark that vouches for bytes in the page cache.",
        (
            Patch(
                "controller.storage.snapshotting.Snapshotting._written",
                edited(
                    (
                        "ledger.sync(lambda failed: self._synced(failed, ",
                        "(lambda failed: failed(None))(lambda failed: self._synced(failed, ",
                    )
                ),
            ),
        ),
        searched_in("cluster", "power", "lag"),
    ),
    Mutant(
        "ledger's folder not synced",
        "1, I5",
        "Segments are durable and their names are not.",
        (
            Patch(
                "ledger.unsynced.UnsyncedFiles.sync",
                edited(("lambda: self._disk.sync_folder(LOG_FOLDER)", "lambda: None")),
            ),
        ),
        searched_in("cluster", "power", "lag"),
    ),
    Mutant(
        "retired segments of the ledger not synced",
        "1, I5",
        "A sync of the ledger covers only the segment that is written now.",
        (
            Patch(
                "ledger.unsynced.UnsyncedFiles.sync",
                edited(
                    (
                        "files = [*retired, current] if current is not None else retired",
                        "files = [current] if current is not None else []",
                    )
                ),
            ),
        ),
        searched_in("cluster", "power", "lag"),
    ),
    Mutant(
        "jump vouches for what was never synced",
        "1, I5",
        "What stands in the own ledger before a jump's mark is taken as it lies there.",
        (
            Patch(
                "controller.storage.opening.Storage.catch_up",
                edited(("ledger.sync(synced)", "synced(None)")),
            ),
        ),
        searched_in("cluster", "lag", "power"),
    ),
    Mutant(
        "jump leaves an earlier life's segments",
        "12, I4",
        "Segments behind the accepted history stay, and the fetched ones seem to continue them.",
        (Patch("ledger.incoming._end_own_history", gives(None)),),
        searched_in("cluster", "lag"),
    ),
    Mutant(
        "snapshot installed unchecked",
        "6, 12, I10",
        "What a jump fetches is put in place without the chain hash that it must end in.",
        (
            Patch("ledger.pull.SegmentPull._ends_wrong", gives(False)),
            Patch(
                "ledger.history_pull.HistoryPull._keep",
                edited(("pull.mark != self._target", "False")),
            ),
        ),
    ),
    Mutant(
        "fence skipped",
        "3, I4",
        "A batch of another epoch than its entry's term, or from another offset, is let in.",
        (Patch("ledger.ledger.Ledger.objection", gives("")),),
        searched_in("cluster", "everything", "cuts"),
    ),
    Mutant(
        "epoch not fenced",
        "3, I4",
        "A batch is let in by its offset alone, whatever its epoch is.",
        (
            Patch(
                "ledger.ledger.Ledger.objection",
                edited(("if header.epoch != term:", "if False:")),
            ),
        ),
    ),
    Mutant(
        "chain not looked at when a batch is taken",
        "12, I4",
        "A batch that passes the fence is appended, whatever it says that it follows.",
        (
            Patch(
                "ledger.ledger.Ledger.accept",
                edited(("reason = self._mark.objection(batch)", 'reason = ""')),
            ),
        ),
    ),
    Mutant(
        "ledger's checksums unchecked",
        "6, I10",
        "The CRC of a frame of ledger or checkpoint is not compared.",
        tuple(
            Patch(f"{module}.take_frame", edited((_CRC_IS_WRONG, "if False:")))
            for module in ("ledger.batch", "ledger.segments", "snapshots.checkpoint")
        ),
    ),
    Mutant(
        "ledger's torn tail not cut",
        "1, 6",
        "What a crash left behind the mark stays, and the next batch goes behind it.",
        (
            Patch(
                "ledger.tail.Tail._cut",
                edited(("self._file.truncate(self._position)", "pass")),
            ),
        ),
        searched_in("cluster", "power"),
    ),
    Mutant(
        "another accepted history is overwritten",
        "12, I4",
        "A whole batch on disk that differs from the committed one is cut like a torn tail.",
        (
            Patch(
                "ledger.tail.Tail._judge",
                edited(("if not reason:", "if False:")),
            ),
        ),
    ),
    Mutant(
        "mark not held against the ledger at opening",
        "6, 12",
        "The batch before the manifest's mark may be any: its hash is not compared.",
        (
            Patch(
                "ledger.opening._reach_mark",
                edited(("if batch.hash != mark.head:", "if False:")),
            ),
        ),
    ),
    Mutant(
        "checkpoint's state hash not compared",
        "6, 12, I13",
        "Records of a checkpoint are believed without summing them up.",
        (
            Patch(
                "controller.storage.checkpoint_loading._image",
                edited(
                    (
                        (
                            "if image.state_hash is None or "
                            "image.state_hash.encode() != header.state_hash:"
                        ),
                        "if False:",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "checkpoint's digest unchecked",
        "6, 12",
        "Blocks of a checkpoint may be left out, doubled or swapped.",
        (
            Patch(
                "snapshots.checkpoint.CheckpointChecker._take_footer",
                edited(
                    (
                        "if footer != (self._blocks, self._records, self._digest.digest()):",
                        "if False:",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "checkpoint of another cluster is loaded",
        "6",
        "A checkpoint's cluster and name are not compared with its content.",
        (Patch("snapshots.store.check_header", gives(None)),),
    ),
    Mutant(
        "batch's offset in its segment unchecked",
        "12, I4",
        "Readers chain batches by nothing: one may be missing, twice, or from elsewhere.",
        (Patch("ledger.chain.LogMark.objection", instead(lambda _self, _batch: "")),),
    ),
)
