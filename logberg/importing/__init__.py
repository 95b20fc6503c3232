"""What another store holds, read into records: `logberg import`.

`znodes` is a tree of ZooKeeper's nodes as one read it. `kafka_layout` reads Kafka's nodes in it,
with `kafka_topics`, `kafka_clients` and `kafka_acls`, into an `ImportPlan`: records, and a manifest
of what was taken, what was left and why. `found_keys` does so with the keys of a plain store, and
`zookeeper_keys` with nodes as keys. Rule: all of this is pure; only `zookeeper_source`,
`etcd_source`, `consul_source` and `cassandra_source` talk to servers, and `tree_file` reads a file.
Door: the sources, `kafka_layout`, `import_plan`, `found_keys`, `zookeeper_keys`, `znodes`,
`store_url`, `tree_file` and `source_error`.
"""
