"""An index of a log: finds records and states without a pass over the log (ADR 0068).

The index is one SQLite file. `opening` builds it and keeps it up, `log_index` answers from it.
It holds nothing that the log doesn't say: whoever deletes it loses only time.
Door: `opening`, `log_index`, `searching`, `answers`, `partial_image`.
"""
