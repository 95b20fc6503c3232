"""What Apache Kafka's brokers ask of controllers.

They register, send heartbeats, change ISRs, take blocks of producer ids, say where replicas lie,
and forward what clients ask them.

Rule: each request becomes one of our own routes' requests, so nothing is decided here. ADR 0072.
"""
