"""Decisions: one manager for each concern.

A manager reads an image and returns records (`controller.result`). Nothing here changes a state,
waits or writes. Randomness comes from the caller. Door: `broker_states`,
`brokers`, `features`, `level_gate`, `partitions`, `replica_directories`, `sweep` and `topics`.
"""
