"""Who decides: one manager for each concern.

Each reads an image and returns records (`controller.result`). Nothing here changes a state, rolls
its own dice, waits or writes. Door: `brokers`, `features`, `level_gate`, `sweep` and `topics`.
"""
