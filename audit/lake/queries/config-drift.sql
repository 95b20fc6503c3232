-- drift
-- Topics whose value of a config differs from the one that most topics with that config have.
WITH last AS (
    SELECT name, config_key, arg_max_null(config_value, "offset") AS value,
           max("offset") AS "offset", max_by(principal, "offset") AS principal,
           max(settled_at) AS settled_at
    FROM config_events
    WHERE kind = 'topic' AND config_key IS NOT NULL
    GROUP BY name, config_key
),
removed AS (
    SELECT name, max("offset") AS "offset" FROM config_events
    WHERE kind = 'topic' AND config_key IS NULL
    GROUP BY name
),
now AS (
    SELECT last.* FROM last LEFT JOIN removed USING (name)
    WHERE value IS NOT NULL AND (removed."offset" IS NULL OR last."offset" > removed."offset")
),
usual AS (
    SELECT config_key, value AS usual,
           row_number() OVER (PARTITION BY config_key ORDER BY count(*) DESC, value) AS place
    FROM now GROUP BY config_key, value
)
SELECT config_key, name AS topic, value, usual, principal, settled_at, "offset"
FROM now JOIN usual USING (config_key)
WHERE place = 1 AND value <> usual
ORDER BY config_key, topic
