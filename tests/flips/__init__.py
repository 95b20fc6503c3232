"""Harms every file of a node in every small way, and opens it as a node would.

Rule: no harm may pass unnoticed. Either the content that is read equals what was written
(`harmless`), or the product reports the damage (`detected`). Anything else is a finding: `silent`
if the product takes other content, or less than was synced, for the truth; `unclean` if an error is
not one of the product's own. `python -m tests.flips` runs the volume.
"""
