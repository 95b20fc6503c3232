-- who
-- Who changed how much: by principal, with the first and the last time.
SELECT principal, sum(count)::BIGINT AS records, count(DISTINCT day) AS days,
       count(DISTINCT operation) AS operations, min(first_at) AS first_at, max(last_at) AS last_at
FROM changes
GROUP BY principal
ORDER BY records DESC, principal
