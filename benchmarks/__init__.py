"""Measurements: `python -m benchmarks` (make bench), `python -m benchmarks.soak` (make soak).

Rule: real processes on loopback, a real disk, and beside each figure what the machine itself
could do in the same minutes (`floors`): on a shared machine a number alone says nothing.
"""
