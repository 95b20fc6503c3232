-- who
-- What happened to one topic: partitions and configs, with who and why.
-- $topic=orders: The topic's name.
SELECT "offset", settled_at, 'partition ' || "partition" || ' ' || kind AS what,
       concat_ws(' ', 'leader ' || leader, 'isr ' || isr::VARCHAR, 'replicas ' || replicas::VARCHAR) AS new,
       principal, operation, reason
FROM partition_events
WHERE topic_name = $topic
UNION ALL
SELECT "offset", settled_at, coalesce('config ' || config_key, 'removed') AS what,
       coalesce(config_value, '') AS new, principal, operation, reason
FROM config_events
WHERE kind = 'topic' AND name = $topic
ORDER BY "offset", what
