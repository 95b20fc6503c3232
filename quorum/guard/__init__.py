"""The rules that make the core safe.

This room judges each frame before the core sees it, and decides when an answer may leave. Each
module's head says which rule it holds and why. Nothing here encodes bytes or opens a file. Door:
every module but `appends`.
"""
