"""What another store holds, read into records: `logberg import`.

`znodes` is a tree of ZooKeeper's nodes as one read it. `kafka_layout` reads Kafka's nodes in it,
with `kafka_topics`, `kafka_clients` and `kafka_acls`, into an `ImportPlan`: records, and a manifest
of what was taken, what was left and why. Rule: all of this is pure; only `zookeeper_source` talks
to a server, and `tree_file` reads a file. Door: `kafka_layout`, `import_plan`, `znodes`,
`zookeeper_source`, `tree_file` and `source_error`.
"""
