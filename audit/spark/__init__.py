"""The audit on Spark: the same answers as `audit.embedded`, for logs that outgrow one machine.

Rule: pyspark is imported here and nowhere else, and nothing here decides what a record means; that
is `metadata`'s, and the tables' law is `audit.tables`. Needs the extra `logberg[audit]`.
"""
