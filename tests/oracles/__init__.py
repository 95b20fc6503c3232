"""Oracles: Kafka's own classes, which answer the same questions as ours.

`kafka_jars` brings Kafka's jars and runs the small Java programs that lie here. `partition_changes`
compares our rules of a partition with Kafka's, `acls` our decisions on actions, `replay` the images
of whole logs. Only `make oracle` needs Java, Maven and a network. `make test` holds our rules to
tables of Kafka's answers: ADR 0028 and 0037.
"""
