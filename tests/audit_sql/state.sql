-- The partitions at an offset: each field as the last record that counts there left it. No interval is used.
WITH counted AS (SELECT * FROM settled WHERE moment < $end)
SELECT topic_id, "partition", arg_max(leader, "offset") AS leader, arg_max(isr, "offset") AS isr,
       arg_max(replicas, "offset") AS replicas
FROM counted
WHERE type IN ('PARTITION_RECORD', 'PARTITION_CHANGE_RECORD')
  AND topic_id NOT IN (SELECT topic_id FROM counted WHERE type = 'REMOVE_TOPIC_RECORD')
GROUP BY topic_id, "partition"
ORDER BY topic_id, "partition"
