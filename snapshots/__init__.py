"""Checkpoint files, which hold an image at an offset: written, verified, kept and fetched.

Rule: records are opaque bytes here. `metadata.image` makes them and reads them.
"""
