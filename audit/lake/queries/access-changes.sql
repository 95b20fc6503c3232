-- access
-- Every change of ACLs, credentials and tokens, with who, from where and why.
SELECT "offset", "timestamp", kind, subject, principal, client_address, auth_method, operation,
       reason, fields
FROM privileged
WHERE kind IN ('acl', 'user', 'token')
ORDER BY "offset"
