"""The journals of stopped nodes: what each one holds, and a new one for a new generation.

Rule: nothing runs here. Callers lock the folder, read with `holdings`, and write with `generation`.
What the entries mean is the caller's affair. Door: both modules.
"""
