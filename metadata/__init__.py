"""Meaning without I/O: records, images, deltas, messages; nothing here reads a clock or a disk."""
