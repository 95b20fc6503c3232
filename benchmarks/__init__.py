"""Measurements: `python -m benchmarks` (make bench), `python -m benchmarks.soak` (make soak).

Rule: measure real processes on loopback and a real disk. With each figure, also measure what the
machine can do at best in the same minutes (`floors`). On a shared machine a figure without its
floor means nothing.
"""
