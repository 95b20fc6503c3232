-- access
-- Addresses that a principal used for the first time in the last days of the log.
-- $days=7: How many days before the log's last record.
WITH seen AS (
    SELECT principal, client_address, min("timestamp") AS first_at, max("timestamp") AS last_at,
           count(DISTINCT base_offset) AS batches, min("offset") AS "offset"
    FROM bronze WHERE client_address <> ''
    GROUP BY principal, client_address
)
SELECT principal, client_address, first_at, last_at, batches, "offset"
FROM seen
WHERE first_at > (SELECT max("timestamp") FROM bronze) - to_days($days::INT)
ORDER BY first_at, principal, client_address
