-- when
-- The state of each partition at a moment.
-- $time=2026-10-06 12:00:00+00: The moment.
SELECT topic_name, "partition", leader, isr, replicas, min_isr, from_at
FROM partition_intervals
WHERE from_at <= $time::TIMESTAMPTZ AND (until_at IS NULL OR until_at > $time::TIMESTAMPTZ)
ORDER BY topic_name, "partition"
