"""Oracles: Kafka's own classes, which answer the same questions as ours.

`kafka_jars` brings Kafka's jars and runs the small Java programs that lie here. `partition_changes`
compares our rules of a partition with Kafka's. Only `make oracle` needs Java, Maven and a network;
`make test` holds our rules to a table of Kafka's answers (ADR 0028).
"""
