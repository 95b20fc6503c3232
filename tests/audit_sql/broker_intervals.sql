-- A repeated registration of one incarnation sets nothing below logberg.version 1. Incarnation and level are
-- read from the record's bytes, as docs/format/records.md lays them out.
CREATE TEMP TABLE levels AS
SELECT "offset", ('0x' || right(hex(record), 2))::INT >= 1 AS literal
FROM settled WHERE type = 'FEATURE_LEVEL_RECORD' AND name = 'logberg.version';

CREATE TEMP TABLE registrations AS
WITH known AS (
    SELECT broker_id, "offset", type = 'UNREGISTER_BROKER_RECORD' AS gone,
           CASE WHEN type = 'REGISTER_BROKER_RECORD' THEN regexp_extract(hex(record), 'C410([0-9A-F]{32})', 1) END
               AS incarnation
    FROM settled WHERE type IN ('REGISTER_BROKER_RECORD', 'UNREGISTER_BROKER_RECORD')
)
SELECT k.*, NOT coalesce(l.literal, false)
            AND coalesce(incarnation = lag(incarnation) OVER (PARTITION BY broker_id ORDER BY k."offset"), false) AS repeated
FROM known k ASOF LEFT JOIN levels l ON k."offset" >= l."offset";

CREATE TEMP TABLE broker_intervals AS
WITH steps AS (
    SELECT s.broker_id, s."offset", moment, moment_ms,
           CASE s.type WHEN 'UNREGISTER_BROKER_RECORD' THEN false ELSE true END AS there,
           CASE WHEN coalesce(repeated, false) OR fenced = 0 THEN NULL ELSE fenced = 1 END AS fenced,
           CASE WHEN coalesce(repeated, false) THEN NULL
                WHEN s.type = 'REGISTER_BROKER_RECORD' THEN in_controlled_shutdown <> 0
                WHEN in_controlled_shutdown <> 0 THEN true END AS stopping
    FROM settled s LEFT JOIN registrations r ON s."offset" = r."offset"
    WHERE s.type IN ('REGISTER_BROKER_RECORD', 'UNREGISTER_BROKER_RECORD', 'FENCE_BROKER_RECORD',
                     'UNFENCE_BROKER_RECORD', 'BROKER_REGISTRATION_CHANGE_RECORD')
),
filled AS (
    SELECT broker_id, "offset", moment, moment_ms, there, last_value(fenced IGNORE NULLS) OVER past AS fenced,
           last_value(stopping IGNORE NULLS) OVER past AS stopping
    FROM steps WINDOW past AS (PARTITION BY broker_id ORDER BY "offset" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
),
at_ends AS (
    SELECT broker_id, moment, any_value(moment_ms) AS moment_ms,
           max_by(CASE WHEN there THEN CASE WHEN fenced THEN 'fenced' WHEN stopping THEN 'stopping' ELSE 'online' END
                       ELSE '' END, "offset") AS state
    FROM filled GROUP BY broker_id, moment
),
begun AS (
    SELECT * FROM at_ends
    QUALIFY state IS DISTINCT FROM lag(state, 1, '') OVER (PARTITION BY broker_id ORDER BY moment)
),
closed AS (
    SELECT *, lead(moment) OVER each AS until_offset, lead(moment_ms) OVER each AS until_ms
    FROM begun WINDOW each AS (PARTITION BY broker_id ORDER BY moment)
)
SELECT broker_id, moment AS from_offset, until_offset, moment_ms AS from_ms, until_ms, state
FROM closed WHERE state <> ''
ORDER BY broker_id, from_offset;
