-- when
-- What people changed at night or at weekends, UTC.
-- $from_hour=6: The first hour of a working day.
-- $until_hour=20: The hour at which it ends.
SELECT "timestamp", base_offset, principal, client_address, operation, any_value(reason) AS reason,
       count(*) AS records
FROM bronze
WHERE principal LIKE 'User:%'
  AND (hour("timestamp" AT TIME ZONE 'UTC') NOT BETWEEN $from_hour::INT AND $until_hour::INT - 1
       OR isodow("timestamp" AT TIME ZONE 'UTC') > 5)
GROUP BY ALL
ORDER BY base_offset, operation
