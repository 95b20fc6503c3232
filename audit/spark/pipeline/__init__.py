"""The pipeline: tables that are kept up to date while the log grows.

`pipeline` plans micro-batches and commits their tables, `micro_batch` runs one as a Spark job, and
`carried_store` keeps what one hands to the next.
"""
