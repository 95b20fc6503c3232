"""The audit on Spark: the same answers as `audit.embedded`, for logs that outgrow one machine.

Rule: only this room imports pyspark. It doesn't decide what a record means, which `metadata` does,
nor what a table holds, which `audit.tables` defines. Needs the extra `logberg[audit]`.
"""
