"""Apache Kafka's own brokers on this machine: their jars, their Java, their processes.

Here lives what fetches a Kafka version, writes a broker's files and starts it. Nothing here runs
inside a controller, and no jar is shipped: the user's Maven fetches them. Door: every module.
"""
