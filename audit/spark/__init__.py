"""The audit on Spark: the same answers as `audit.embedded`, for logs that outgrow one machine.

Rule: only this room imports pyspark. It doesn't decide what a record means, which `metadata` does,
nor what a table holds, which `audit.tables` defines. Needs the extra `logberg[audit]`.

    source/     the log as Spark's data source `logberg_log`; here alone it is decoded
    folds/      what the records of a micro-batch or a job add up to; tasks and driver run these
    pipeline/   micro-batches that keep tables up to date, and what one hands to the next
    jobs/       the jobs of `audit.tables`, each from the whole log

Beside the rooms lies how Spark is started: `java` finds a Java, `session` starts the session,
`submit` is the script for spark-submit, and `packaging` writes what a cluster's workers need.
"""
