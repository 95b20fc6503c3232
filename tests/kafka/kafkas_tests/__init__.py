"""Apache Kafka's own integration tests, run on our controllers and on stock KRaft (ADR 0076).

Kafka's test kit makes each controller by one class, `kafka.server.ControllerServer`. Ours of the
same name, in `java/`, lies before Kafka's jars on the class path and starts `logberg controller`.
Tests, brokers and kit are Kafka's, as published.

`jar_sets` names the jars, `compiling` compiles our classes, `running` runs one test class,
`reports` reads what JUnit reports, `outcomes` keeps it, and `page` writes it down.
"""
