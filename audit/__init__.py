"""Replay, verify and dump, for whoever holds the files. Plain Python, no running cluster needed."""
