"""Spark's progress in one line."""

from pyspark.sql import SparkSession


def spark_progress(spark: SparkSession) -> str:
    """Return the running stages and their tasks, as Spark's status tracker counts them."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in sorted(tracker.getActiveStageIds())]
    words = [
        f"stage {stage.stageId}, {stage.numCompletedTasks} of {stage.numTasks} tasks"
        for stage in stages
        if stage is not None
    ]
    return "Spark works: " + ("; ".join(words) or "between two stages")
