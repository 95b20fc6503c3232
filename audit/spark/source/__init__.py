"""The log as Spark's data source `logberg_log`: places in, rows out.

`reading` plans and reads pieces of the log, `bronze` makes rows of their records, `frames` makes
rows of the frames as they lie on disk, and `log_source` is the source itself, for batches and for
streams.
"""
