-- who
-- Who acted for another user or as a broker, how often and when.
SELECT principal, on_behalf_of, acted_as, operation, count(DISTINCT base_offset) AS batches,
       min("timestamp") AS first_at, max("timestamp") AS last_at
FROM bronze
WHERE on_behalf_of <> '' OR acted_as <> ''
GROUP BY ALL
ORDER BY batches DESC, principal, on_behalf_of, acted_as, operation
