"""The twins of `runtime` in one process: virtual time, a disk that forgets, a network that lies.

Rule: a run is a function of its seed. Nothing here reads a real clock, and nothing iterates
over a set or anything else whose order hangs on a hash, so one seed is one trace on every
machine and under every `PYTHONHASHSEED`. For tests and benchmarks only.
"""
