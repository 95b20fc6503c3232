CREATE TEMP TABLE privileged AS
SELECT "offset", at_ms AS timestamp_ms, strftime(day, '%Y-%m-%d') AS day,
       CASE WHEN type IN ('ACCESS_CONTROL_ENTRY_RECORD', 'REMOVE_ACCESS_CONTROL_ENTRY_RECORD') THEN 'acl'
            WHEN type IN ('USER_SCRAM_CREDENTIAL_RECORD', 'REMOVE_USER_SCRAM_CREDENTIAL_RECORD',
                          'CERTIFICATE_REVOCATION_RECORD', 'REMOVE_CERTIFICATE_REVOCATION_RECORD') THEN 'user'
            WHEN type IN ('DELEGATION_TOKEN_RECORD', 'REMOVE_DELEGATION_TOKEN_RECORD',
                          'ACCESS_TOKEN_RECORD', 'JOIN_TOKEN_RECORD') THEN 'token'
            WHEN type IN ('FEATURE_LEVEL_RECORD', 'KRAFT_VERSION_RECORD') THEN 'feature'
            WHEN type IN ('VOTERS_RECORD', 'CLUSTER_GENERATION_RECORD') THEN 'voters'
            WHEN type IN ('CLUSTER_KEY_RECORD', 'HEAD_KEY_RECORD') THEN 'key'
            WHEN type = 'CLIENT_QUOTA_RECORD' THEN 'quota'
            WHEN type IN ('PARTITION_RECORD', 'PARTITION_CHANGE_RECORD') AND leader_recovery_state = 1 AND leader >= 0
                THEN 'unclean_election'
            WHEN type = 'CONFIG_RECORD' AND config_key = 'unclean.leader.election.enable' AND config_value IS NOT NULL
                THEN 'unclean_election' END AS kind,
       principal, on_behalf_of, request_id, operation, reason, auth_method, client_address, acted_as
FROM settled
WHERE kind IS NOT NULL
ORDER BY "offset";
