"""Checkpoint files: an image at an offset, written, verified, kept, fetched.

Rule: records are opaque bytes here; `metadata.image` makes them and reads them.
"""
