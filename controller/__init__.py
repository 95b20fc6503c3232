"""The controllers: one active, the others standby, all with the same log and image.

`parts` builds the rooms, and `controller` passes events between them. `http` answers requests,
`leader` writes changes one after another, `managers` decide, `replica` applies, `storage` keeps the
files.
Each room but `managers` has a module `parts`: the room's objects, wired.
"""
