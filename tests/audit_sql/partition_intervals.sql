CREATE TEMP TABLE partition_intervals AS
WITH changed AS (
    SELECT *, lag(state) OVER each AS before, row_number() OVER each AS place
    FROM partition_states WINDOW each AS (PARTITION BY topic_id, "partition" ORDER BY moment)
),
begun AS (
    SELECT * FROM changed
    WHERE state IS DISTINCT FROM before
),
closed AS (
    SELECT *, lead(moment) OVER each AS until_offset, lead(moment_ms) OVER each AS until_ms
    FROM begun WINDOW each AS (PARTITION BY topic_id, "partition" ORDER BY moment)
)
SELECT topic_id, "partition", moment AS from_offset, topic_name, until_offset, moment_ms AS from_ms, until_ms,
       state.leader AS leader, state.isr AS isr, state.replicas AS replicas, state.min_isr::BIGINT AS min_isr,
       state.leader = -1 AS offline, len(state.isr) < state.min_isr AS under_min_isr
FROM closed JOIN topics USING (topic_id)
WHERE state IS NOT NULL
ORDER BY topic_id, "partition", from_offset;
