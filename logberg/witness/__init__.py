"""A witness: a small process that cosigns the heads of logs, after it has seen that they only grew.

Rule: a witness knows logs by their keys, asks nobody and trusts nobody. What it cosigned is durable
before it answers, so it never cosigns two histories of one log. It needs no cluster and shares no
disk with one.

- `witness`: judges what a log submits, and cosigns;
- `state`: what it cosigned last, and what it refused, on its disk;
- `settings`: its file, its key, its logs;
- `process`: the process, with its listener and metrics.

The door is `settings` and `process`. It speaks C2SP's tlog-witness, so it serves logs of other
makers, too (ADR 0088).
"""
