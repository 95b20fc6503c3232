-- availability
-- The partitions that were without a leader, or with too few in-sync replicas, for the longest time.
SELECT key, sum(offline_ms) / 1000 AS offline_s, sum(under_min_isr_ms) / 1000 AS under_min_isr_s,
       sum(leader_changes)::BIGINT AS leader_changes,
       round(100 - 100 * sum(offline_ms) / greatest(sum(present_ms), 1), 4) AS available_percent
FROM availability
WHERE kind = 'partition'
GROUP BY key
HAVING sum(offline_ms) + sum(under_min_isr_ms) > 0
ORDER BY offline_s DESC, under_min_isr_s DESC, key
