"""Kafka's protocol in front of our controllers: unmodified Kafka brokers and clients (ADR 0070).

`wire` reads and writes Kafka's messages and record batches, from the schemas in `schemas`.
`serving` is one connection as bytes in and bytes out. The other rooms answer requests. A request
that changes something becomes a request of our own HTTP interface, so nothing is decided twice.

Rule: nothing here knows a socket or an event loop, so that the same code runs in the simulator. The
controllers don't know this package. `logberg/processes` puts the two together.
"""
