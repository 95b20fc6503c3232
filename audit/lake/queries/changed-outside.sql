-- drift
-- Configs that were changed by anybody but the one who should, such as a deployment.
-- $principal=User:deploy%: Who should change configs; % stands for any text.
SELECT "offset", settled_at, kind, name, config_key, config_value, principal, client_address, reason
FROM config_events
WHERE config_key IS NOT NULL AND principal NOT LIKE $principal
ORDER BY "offset"
