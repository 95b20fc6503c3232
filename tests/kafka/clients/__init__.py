"""Kafka's clients against our own agents and controllers, without a Kafka broker.

`calls` says what a table's line is. `confluent_calls`, `kafka_python_calls`, `aiokafka_calls`,
`kcat_commands` and `java_commands` are the tables. `libraries` installs the libraries of Python in
an environment of their own, in which `driver` runs their calls. `cluster` is what they ask. `page`
writes docs/kafka/clients.md.
"""
