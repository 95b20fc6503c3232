"""Simulated counterparts of `runtime`'s rooms: clock, disk, links and requests, with faults.

Rule: the seed alone determines a run. Nothing here reads a real clock, or iterates over a set or
anything else whose order depends on a hash. So a seed gives the same trace on every machine and
under every `PYTHONHASHSEED`. For tests and benchmarks only; no other package may import it.
"""
