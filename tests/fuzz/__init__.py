"""Fuzzers of every parser that reads the network or a file from others: `make fuzz TARGET=…`.

- `target`: what a target is, and what must hold for any bytes;
- `of_http`, `of_links`, `of_kafka`, `of_files`, `of_heads`: the targets, by what they read;
- `table`: all targets by name;
- `repairs`: right lengths and checksums for damaged frames, so that a fuzzer gets behind them;
- `damage`: damaged seeds, for Hypothesis and for half of what atheris does;
- `__main__`: one target for so many seconds, with atheris if it is installed;
- `found/`: inputs that once broke a parser. `test_fuzz.py` reads each of them again.

Rule: a parser answers any bytes with a value or with one of its refusals. Anything else is a
finding. A finding becomes a file in `found/` before it is fixed.
"""
