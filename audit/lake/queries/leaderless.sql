-- availability
-- Every time that a partition had no leader, the longest first.
SELECT topic_name, "partition", from_at, until_at,
       date_diff('millisecond', from_at, until_at) / 1000 AS seconds, from_offset, replicas
FROM partition_intervals
WHERE offline
ORDER BY until_at IS NOT NULL, seconds DESC, topic_name, "partition", from_offset
