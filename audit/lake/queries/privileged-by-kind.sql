-- access
-- Privileged changes by kind and principal.
SELECT kind, principal, count(*) AS changes, min("timestamp") AS first_at, max("timestamp") AS last_at
FROM privileged
GROUP BY kind, principal
ORDER BY kind, changes DESC, principal
