"""The audit: pipeline and Spark, the index and its console, one core, the independent verifier."""
