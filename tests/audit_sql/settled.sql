-- Which records count, and from which batch on. Whether a transaction is open after a marker depends
-- on that marker alone, so no state is carried: a record is inside if the marker before it is a Begin.
CREATE TEMP VIEW placed AS
SELECT *, last_value(mark IGNORE NULLS) OVER (
           ORDER BY "offset" ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) IS NOT DISTINCT FROM 'begin' AS inside,
       first_value(CASE WHEN mark <> 'begin' THEN {'mark': mark, 'base': base_offset, 'at': at_ms} END IGNORE NULLS)
           OVER (ORDER BY "offset" ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS closing
FROM (
    SELECT *, epoch_ms("timestamp") AS at_ms,
           CASE type WHEN 'BEGIN_TRANSACTION_RECORD' THEN 'begin' WHEN 'END_TRANSACTION_RECORD' THEN 'end'
                     WHEN 'ABORT_TRANSACTION_RECORD' THEN 'abort' WHEN 'BEGIN_EPOCH_RECORD' THEN 'epoch' END AS mark
    FROM log
);

CREATE TEMP TABLE settled AS
SELECT * EXCLUDE (closing, inside, mark),
       CASE WHEN within THEN closing.base ELSE base_offset END AS moment,
       CASE WHEN within THEN closing.at ELSE at_ms END AS moment_ms
FROM (SELECT *, coalesce(mark <> 'epoch', true) AND (inside OR coalesce(mark = 'begin', false)) AS within FROM placed)
WHERE NOT within OR closing.mark = 'end';

CREATE TEMP TABLE horizon AS SELECT coalesce(max_by(epoch_ms("timestamp"), "offset"), 0) AS ms FROM log;
