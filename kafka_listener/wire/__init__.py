"""Kafka's bytes: messages by their schemas, headers, record batches.

`messages.py` is the door for messages and headers, `record_batches.py` for records. The other
modules here turn a schema into an encoder and a decoder for one version of it.
"""
