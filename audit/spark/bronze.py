"""Bronze: the log as a table, one row a record, nothing interpreted and nothing left out.

Rule: a column is null where the record has no such field or leaves it untouched. What is costly to
build (`record`, `fields`) is built only when it is asked for.
"""

from typing import Final

BRONZE_DDL: Final = (
    "offset bigint, timestamp_ms bigint, day string, epoch bigint, base_offset bigint, "
    "end_offset bigint, auth_method string, client_address string, client_id string, "
    "principal string, on_behalf_of string, request_id string, operation string, reason string, "
    "type string, version int, topic_id string, topic_name string, partition int, broker_id int, "
    "leader int, leader_recovery_state int, isr array<int>, replicas array<int>, fenced int, "
    "in_controlled_shutdown int, broker_epoch bigint, resource_type int, config_key string, "
    "config_value string, name string"
)
"""What `read_log` gives unless other columns are asked for."""
COSTLY_DDL: Final = "record binary, fields string"
"""Only by request: the record's canonical bytes; its fields as JSON, secrets starred."""
