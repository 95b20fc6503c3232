"""Compares declared state with an image, and decides what makes them equal: `logberg apply`.

Each module has the kinds of one subject; `apply` puts them together. Rule: they only compare. What
is valid, and which records a change needs, the managers of the single routes decide. Door: `apply`.
"""
