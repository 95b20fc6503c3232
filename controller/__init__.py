"""The controllers: one active, the others standing by, all with the same log and image.

`controller` wires the rooms together, and `node_view` shows the whole. `http` answers requests,
`leader` orders what is decided, `managers` decide, `replica` applies, `storage` keeps the files.
"""
