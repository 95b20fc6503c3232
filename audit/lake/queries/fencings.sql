-- availability
-- How often and for how long each broker was fenced.
SELECT broker_id, count(*) AS times, min(from_at) AS first_at, max(from_at) AS last_at,
       sum(date_diff('millisecond', from_at, until_at)) / 1000 AS seconds,
       bool_or(until_at IS NULL) AS fenced_now
FROM broker_intervals
WHERE state = 'fenced'
GROUP BY broker_id
ORDER BY times DESC, broker_id
