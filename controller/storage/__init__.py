"""A controller's files: opening, loading, checkpoints, scrubbing, and files fetched from peers.

Here lives the code that opens, writes, replaces or removes ledger segments and checkpoints. Nothing
here decides what a record says. Door: `damage`, `opening`, `scrubbing` and `snapshotting`.
"""
