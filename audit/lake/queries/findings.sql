-- access
-- What the rules found, the worst first, and of equals the newest.
SELECT "offset", "timestamp", severity, rule, subject, principal, client_address, count, sentence
FROM findings
ORDER BY list_position(['critical', 'high', 'medium', 'low'], severity), "offset" DESC, rule
