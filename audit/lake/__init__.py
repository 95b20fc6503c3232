"""The tables that the pipeline keeps, as Delta tables that other tools read.

Each table is a folder of Parquet files and a log of commits (`_delta_log`). delta-rs writes and
reads that log (ADR 0063). This room knows no Spark: any process may write a file, one process
commits. It doesn't know what a table means; `audit.tables` says that. Needs the extra
`logberg[audit]`.
"""
