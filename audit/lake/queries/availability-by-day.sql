-- availability
-- By day: how much of the partitions' time they had a leader, and enough in-sync replicas.
SELECT day, count(*) AS partitions,
       round(100 - 100 * sum(offline_ms) / greatest(sum(present_ms), 1), 4) AS led_percent,
       round(100 - 100 * sum(under_min_isr_ms) / greatest(sum(present_ms), 1), 4) AS in_sync_percent,
       sum(leader_changes)::BIGINT AS leader_changes
FROM availability
WHERE kind = 'partition'
GROUP BY day
ORDER BY day
