"""Bytes that rot: every file of a node is harmed in every small way, and opened as a node opens it.

Rule: nothing passes in silence. What is read from harmed files is provably what was written
(`harmless`), or the product says that it isn't (`detected`). Anything else is a finding: `silent`
when other content, or less than was synced, is taken for the truth; `unclean` when an error comes
that isn't the product's own. `python -m tests.flips` runs the volume.
"""
