"""The Raft core: PySyncObj behind typed messages.

This room holds everything that knows the library: its dicts, its names, the globals that we
replace. It makes nothing safe; `quorum.guard` does. Door: `core`, `core_node`, `messages`,
`proposals`; no other room imports `pysyncobj`.
"""
