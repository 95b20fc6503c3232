-- access
-- What the rules found, the newest first.
SELECT "offset", "timestamp", severity, rule, subject, principal, client_address, sentence
FROM findings
ORDER BY "offset" DESC, rule
