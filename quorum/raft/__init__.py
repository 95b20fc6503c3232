"""The Raft core: PySyncObj behind typed messages.

Here lives everything that knows the library: its dicts, its names, the globals that we replace.
What makes the core safe lives in `quorum.guard`. Door: `core`, `core_node`, `messages`,
`proposals`; no other room imports `pysyncobj`.
"""
