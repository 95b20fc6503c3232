"""A lost majority comes back: `logberg quorum recover`.

`survivors` reads what each stopped controller's folder holds. `choosing` picks the most complete of
them, and says what is certain, what is probable and what may be lost. `generations` begins a new
generation of the cluster in a folder; whoever restores a cluster from anything else can use it,
too. `recovering` puts the three together, in an order in which a crash loses nothing.

Rule: all of this works on `Disk`s, of stopped nodes, and asks no clock and no network. Only
`generations` and `recovering` write. Door: every module.
"""
