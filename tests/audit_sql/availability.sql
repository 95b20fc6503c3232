CREATE TEMP TABLE availability AS
WITH things AS (
    SELECT 'partition' AS kind, topic_name || '-' || "partition" || '@' || topic_id AS key, from_ms, until_ms,
           offline, under_min_isr, false AS fenced,
           coalesce(leader <> lag(leader) OVER (PARTITION BY topic_id, "partition" ORDER BY from_offset), false) AS changed
    FROM partition_intervals
    UNION ALL
    SELECT 'broker', broker_id::VARCHAR, from_ms, until_ms, false, false, state = 'fenced', false FROM broker_intervals
),
ended AS (SELECT things.* EXCLUDE (until_ms), coalesce(until_ms, ms) AS until_ms FROM things, horizon),
by_day AS (
    SELECT *, unnest(range(from_ms // 86400000, greatest(until_ms - 1, from_ms) // 86400000 + 1)) AS number FROM ended
),
cut AS (
    SELECT *, least(until_ms, (number + 1) * 86400000) - greatest(from_ms, number * 86400000) AS ms FROM by_day
)
SELECT kind, key, strftime(make_date(number::INT), '%Y-%m-%d') AS day, sum(ms)::BIGINT AS present_ms,
       coalesce(sum(ms) FILTER (offline), 0)::BIGINT AS offline_ms,
       coalesce(sum(ms) FILTER (under_min_isr), 0)::BIGINT AS under_min_isr_ms,
       coalesce(sum(ms) FILTER (fenced), 0)::BIGINT AS fenced_ms,
       count(*) FILTER (changed AND number = from_ms // 86400000) AS leader_changes
FROM cut GROUP BY kind, key, number
ORDER BY kind, key, day;
