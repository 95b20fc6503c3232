"""One way to get a Spark session, on a laptop without Java as on a cluster.

Rule: local, quiet and small unless told otherwise: two cores, no web pages, loopback, UTC. What
spark-submit has decided (master, memory) is left alone.
"""

from collections.abc import Mapping

from pyspark.sql import SparkSession


def audit_session(
    *,
    master: str = "local[2]",
    driver_memory: str = "2g",
    app_name: str = "quorate audit",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark, or return the session that runs. It knows the source `quorate_log`.

    `settings` are Spark's own (`spark.sql.shuffle.partitions`). Raises SparkUnavailableError with
    a sentence: no Java, too little memory, no pyspark.
    """
    raise NotImplementedError
