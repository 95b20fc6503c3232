"""The bridge from Kafka's nodes in ZooKeeper to this cluster, and back: `logberg import zookeeper`.

`live_tree` keeps a tree of nodes by watches. `source_state` divides what a tree says into what a
step of the bridge brings, and `following` makes the steps. Then `claim` makes this cluster the
controller in ZooKeeper's eyes, `kafka_nodes` says what nodes a state needs, and `write_back` writes
them. ADR 0062 says why. Rule: only `live_tree`, `claim` and `write_back` talk to ZooKeeper.
"""
