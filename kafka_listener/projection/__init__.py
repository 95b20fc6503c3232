"""Shows our log as Kafka's metadata log: the same offsets, Kafka's bytes.

Lives here: the rules of the projection, the projected log that Kafka's brokers fetch, its digest,
and the snapshots that are projected from checkpoints (ADR 0071). Nothing here answers a request.
"""
