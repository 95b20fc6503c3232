-- drift
-- Partitions whose number of replicas differs from that of most partitions.
WITH now AS (
    SELECT topic_name, "partition", len(replicas) AS factor, replicas
    FROM partition_intervals WHERE until_at IS NULL
),
usual AS (SELECT factor FROM now GROUP BY factor ORDER BY count(*) DESC, factor LIMIT 1)
SELECT topic_name, "partition", now.factor, usual.factor AS usual, replicas
FROM now, usual
WHERE now.factor <> usual.factor
ORDER BY topic_name, "partition"
