"""What only the active controller does: it decides in turn, writes batches and watches sessions.

Here lives the order in which changes are decided and proposed. `controller.managers` decides what a
change means. Nothing here knows a route or opens a file. Door: every module but `activation`,
`batch_writer`, `delegation`, `idempotency`, `lanes` and `large_changes`.
"""
