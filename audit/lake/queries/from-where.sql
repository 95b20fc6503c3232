-- who
-- From which addresses each principal made requests, and how it was authenticated.
SELECT principal, client_address, auth_method, count(DISTINCT base_offset) AS batches,
       min("timestamp") AS first_at, max("timestamp") AS last_at
FROM bronze
WHERE client_address <> ''
GROUP BY ALL
ORDER BY principal, batches DESC, client_address, auth_method
