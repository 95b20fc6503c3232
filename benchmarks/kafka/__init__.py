"""Kafka's brokers: what they cost a controller, and how they fare on ours and on stock KRaft."""
