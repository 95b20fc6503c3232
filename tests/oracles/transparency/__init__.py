"""Our trees, tiles, proofs and signed notes, judged by Go's `sumdb/tlog` and `sumdb/note`."""
