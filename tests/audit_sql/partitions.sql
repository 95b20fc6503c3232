-- All that can change a partition's row: its own records, the end of its topic, and min.insync.replicas of
-- its topic's name and of the cluster. A column that an event doesn't set is null; a config that is deleted is
-- a struct that holds null.
CREATE TEMP TABLE topics AS
SELECT topic_id, topic_name, "offset" AS created FROM settled WHERE type = 'TOPIC_RECORD';

CREATE TEMP TABLE removals AS
SELECT s.topic_id, t.topic_name, s."offset", s.moment, s.moment_ms
FROM settled s JOIN topics t USING (topic_id) WHERE s.type = 'REMOVE_TOPIC_RECORD';

CREATE TEMP TABLE existing AS
SELECT DISTINCT topic_id, topic_name, "partition"
FROM (SELECT topic_id, "partition" FROM settled WHERE type = 'PARTITION_RECORD') JOIN topics USING (topic_id);

CREATE TEMP TABLE min_isr AS
SELECT "offset", moment, moment_ms, resource_type, name,
       {'value': CASE WHEN regexp_full_match(config_value, '[0-9]{1,9}') AND config_value::INT > 0
                      THEN config_value::INT END} AS setting
FROM settled
WHERE type = 'CONFIG_RECORD' AND config_key = 'min.insync.replicas';

CREATE TEMP TABLE partition_steps AS
SELECT topic_id, "partition", "offset", moment, moment_ms, leader, isr, replicas,
       true AS there, NULL AS of_topic, NULL AS of_cluster
FROM settled WHERE type IN ('PARTITION_RECORD', 'PARTITION_CHANGE_RECORD')
UNION ALL BY NAME
SELECT topic_id, "partition", "offset", moment, moment_ms, false AS there, {'value': NULL::INT} AS of_topic
FROM existing JOIN removals USING (topic_id, topic_name)
UNION ALL BY NAME
SELECT topic_id, "partition", "offset", moment, moment_ms, setting AS of_topic
FROM existing JOIN min_isr ON resource_type = 2 AND name = topic_name
UNION ALL BY NAME
SELECT e.topic_id, "partition", "offset", moment, moment_ms, {'value': NULL::INT} AS of_topic
FROM existing e JOIN removals r ON e.topic_name = r.topic_name AND e.topic_id <> r.topic_id
UNION ALL BY NAME
SELECT topic_id, "partition", "offset", moment, moment_ms, setting AS of_cluster
FROM existing CROSS JOIN min_isr WHERE resource_type = 4 AND name = '';

CREATE TEMP TABLE partition_states AS
WITH filled AS (
    SELECT topic_id, "partition", "offset", moment, moment_ms,
           last_value(leader IGNORE NULLS) OVER past AS leader,
           last_value(isr IGNORE NULLS) OVER past AS isr,
           last_value(replicas IGNORE NULLS) OVER past AS replicas,
           coalesce(last_value(there IGNORE NULLS) OVER past, false) AS there,
           last_value(of_topic IGNORE NULLS) OVER past AS of_topic,
           last_value(of_cluster IGNORE NULLS) OVER past AS of_cluster
    FROM partition_steps
    WINDOW past AS (PARTITION BY topic_id, "partition" ORDER BY "offset"
                    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
),
at_ends AS (
    SELECT topic_id, "partition", moment, any_value(moment_ms) AS moment_ms, max_by(leader, "offset") AS leader,
           max_by(isr, "offset") AS isr, max_by(replicas, "offset") AS replicas, max_by(there, "offset") AS there,
           coalesce(max_by(of_topic, "offset").value, max_by(of_cluster, "offset").value, 1) AS min_isr
    FROM filled GROUP BY topic_id, "partition", moment
)
SELECT * EXCLUDE (leader, isr, replicas, min_isr, there),
       CASE WHEN there THEN {'leader': leader, 'isr': isr, 'replicas': replicas, 'min_isr': min_isr} END AS state
FROM at_ends;
