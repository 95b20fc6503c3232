"""A small replicated key-value service on a Logberg cluster.

    logberg up --brokers 0                                    # each line in a terminal of its own
    python -m examples.replicated_kv 1 8001 logberg-data
    python -m examples.replicated_kv 2 8002 logberg-data
    python -m examples.replicated_kv 3 8003 logberg-data
    logberg topics create kv --partitions 4 --replication-factor 3
    curl -L -X PUT -d red http://127.0.0.1:8001/apple
    curl -L http://127.0.0.1:8002/apple

Logberg says who leads each partition and which replicas are in sync. The service keeps the data:
`partition_log` is one replica's log on disk, `leading` and `following` replicate it as Kafka does,
and `service` is the HTTP interface.

Rule: the leader acknowledges a write when every in-sync replica holds it, and only while at least
two are in sync. So a write survives the loss of any one node. All nodes listen on loopback without
TLS, since this is an example.
"""
