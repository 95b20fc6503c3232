"""What each column of the audit's tables means, by its name.

Rule: one name, one meaning. A table whose column means something else says so itself
(`audit.tables.jobs`, `audit.tables.kept`). Times are said as moments: a job's row holds them in
milliseconds since 1970 UTC, a kept table as a timestamp.
"""

from typing import Final

MEANINGS: Final[dict[str, str]] = {
    # Where and when a record stands in the log.
    "offset": "The record's offset in the log.",
    "timestamp_ms": "When the record's batch was written, by the active controller's clock.",
    "day": "The UTC date of the row's time.",
    "epoch": "The epoch of the controller that wrote the batch.",
    "base_offset": "The offset of the first record of the batch.",
    "end_offset": "The offset after the last record of the batch.",
    "settled_base": "The base offset of the batch that settled the record.",
    "settled_ms": "The time of the batch that settled the record.",
    "type": "The record's type, such as `PARTITION_CHANGE_RECORD`.",
    "version": "The version of the record's type.",
    "outcome": (
        "`settled`: the record counts. `aborted`: its transaction was aborted. `open`: its "
        "transaction has not ended."
    ),
    "record": "The record's bytes, as docs/format/records.md describes them, with its secrets.",
    "fields": "The record's fields as JSON, with secrets starred.",
    # Who caused it, from where, and why.
    "principal": (
        "Who caused it, as authenticated: `User:…`, `Broker:…`, or `Controller:…` for a change "
        "that no request caused."
    ),
    "on_behalf_of": "The user for whom the principal spoke, if it may speak for others.",
    "request_id": "The id of the request; empty: it had none.",
    "operation": "What was asked, such as `createTopics`.",
    "reason": "The reason that the caller gave.",
    "auth_method": "How the principal was authenticated.",
    "client_address": "The address from which the request came.",
    "client_id": "The name that the client gives itself; nobody checks it.",
    "acted_as": (
        "The broker for which a principal spoke that is not that broker's own; else empty."
    ),
    # Attempts.
    "through": "The broker that asked for the principal, by its own credentials; else empty.",
    "code": "The error's code, such as `CLUSTER_AUTHORIZATION_FAILED`; empty: it was accepted.",
    "controller_id": "The controller that was asked.",
    "detail": "In what detail it was recorded: `metadata`, `request` or `response`.",
    "request": "Method and path of the first of them; empty below the detail `request`.",
    "body_sha256": "The hash of its body, hexadecimal; empty: it had none.",
    "answer": "What it was answered; empty below the detail `response`.",
    # What it is about.
    "topic_id": "The topic's id, 22 characters.",
    "topic_name": "The topic's name at that offset.",
    "partition": "The partition's number.",
    "broker_id": "The broker's id.",
    "resource": (
        "What the record is about, in one word: `topic:orders`, `broker:3`, "
        "`config:topic:orders:retention.ms`, `acl:ID`, `user:NAME`, `feature:NAME`, `quota:…`."
    ),
    "name": "The name of a thing other than a topic, a broker or a config key.",
    "resource_type": "The kind of resource as a number, as the record has it.",
    "config_key": "The key of a config or of a quota.",
    "config_value": "Its value, starred if it is a secret; null: the key is removed.",
    # States of partitions and brokers.
    "leader": "The broker that leads the partition; -1: nobody leads it.",
    "leader_recovery_state": "1: the leader may have lost records (an unclean election); 0: no.",
    "isr": "The in-sync replicas, by broker id.",
    "replicas": "The replicas, by broker id, the preferred leader first.",
    "min_isr": "The number of in-sync replicas that `min.insync.replicas` asks for.",
    "offline": "Whether nobody leads the partition.",
    "under_min_isr": "Whether fewer replicas are in sync than `min_isr`.",
    "fenced": "1: the record fences the broker. -1: it unfences it. 0: neither.",
    "in_controlled_shutdown": "1: the broker shuts down in a controlled way.",
    "broker_epoch": "The epoch of the broker's registration.",
    "state": "`fenced`, else `stopping` (in controlled shutdown), else `online`.",
    "from_offset": "The base offset of the batch that began it.",
    "until_offset": "The base offset of the batch that ended it; null: it lasts.",
    "from_ms": "When it began.",
    "until_ms": "When it ended; null: it lasts.",
    # Sums.
    "present_ms": "How long the thing existed on that day, in milliseconds.",
    "offline_ms": "How long nobody led the partition, in milliseconds.",
    "under_min_isr_ms": "How long too few replicas were in sync, in milliseconds.",
    "fenced_ms": "How long the broker was fenced, in milliseconds.",
    "leader_changes": "How often the leader changed.",
    "count": "The number of records.",
    "first_offset": "The offset of the first of them.",
    "last_offset": "The offset of the last of them.",
    "first_ms": "The time of the first of them.",
    "last_ms": "The time of the last of them.",
    # Logs as they lie on disk.
    "replica": "The replica's name: its folder or URL.",
    "segment": "The segment's file name, without its folder.",
    "previous_hash": "The chain hash of the batch before, as this batch states it; hexadecimal.",
    "hash": "The hash of the batch's bytes on disk; hexadecimal.",
    "crc_ok": "Whether the batch's checksum is right.",
    "sentence": "What is wrong, in one sentence.",
    "agreed_hash": "The majority's hash at this offset; null: there is no majority.",
    # The state at an offset.
    "table": "The table of the image; `*` is all of them.",
    "entries": "The number of entries.",
    "shared_hash": "The sum of the hashes of entries that brokers share; 64 hexadecimal digits.",
    "controllers_hash": "The sum of the hashes of entries that only controllers have; likewise.",
}
