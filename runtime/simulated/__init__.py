"""Simulated counterparts of `runtime`: virtual time, a disk and a network with faults.

Rule: the seed alone determines a run. Nothing here reads a real clock, or iterates over a set or
anything else whose order depends on a hash. So a seed gives the same trace on every machine and
under every `PYTHONHASHSEED`. For tests and benchmarks only.
"""
