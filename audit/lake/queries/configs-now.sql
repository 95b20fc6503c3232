-- drift
-- The configs that are set, and who set them last.
WITH last AS (
    SELECT kind, name, config_key, arg_max_null(config_value, "offset") AS value,
           max("offset") AS "offset",
           max_by(principal, "offset") AS principal, max(settled_at) AS settled_at
    FROM config_events
    WHERE config_key IS NOT NULL
    GROUP BY kind, name, config_key
),
removed AS (
    SELECT name, max("offset") AS "offset" FROM config_events
    WHERE kind = 'topic' AND config_key IS NULL
    GROUP BY name
)
SELECT last.kind, last.name, config_key, last.value, principal, settled_at, last."offset"
FROM last LEFT JOIN removed ON last.kind = 'topic' AND last.name = removed.name
WHERE last.value IS NOT NULL AND (removed."offset" IS NULL OR last."offset" > removed."offset")
ORDER BY last.kind, last.name, config_key
