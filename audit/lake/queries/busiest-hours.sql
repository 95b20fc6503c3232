-- when
-- How many changes people made in each hour of the week, UTC.
SELECT dayname("timestamp" AT TIME ZONE 'UTC') AS weekday, hour("timestamp" AT TIME ZONE 'UTC') AS hour,
       count(DISTINCT base_offset) AS batches, count(DISTINCT principal) AS principals
FROM bronze
WHERE principal LIKE 'User:%'
GROUP BY ALL
ORDER BY batches DESC, weekday, hour
