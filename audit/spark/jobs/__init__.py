"""The audit's jobs on Spark: a table of `audit.tables` from one whole log.

The door is `engine`. `audited_log` is the log that a job reads. `folded_jobs` has the jobs that the
folds compute, `frame_jobs` those that are plain functions of DataFrames, and `state` the state.
"""
