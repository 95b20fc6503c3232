"""Rewritten histories and stolen keys: what is found, and by whom.

Each party is the real one: controllers that sign heads, a witness, a place, an agent, the verifier.
`python -m tests.rewrites.table` writes the table in docs/rewrites.md.
"""
