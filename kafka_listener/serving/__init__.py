"""One connection of a Kafka client, as bytes in and bytes out.

`session.py` is the door; `service.py` holds what all connections of a listener share. A session
splits frames, knows its caller, answers ApiVersions and SASL, and gives every other request to its
handler. It knows no socket: `runtime.sessions` or the simulator carries the bytes.
"""
