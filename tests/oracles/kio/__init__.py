"""Compares our bytes of requests and responses with those of kio, a codec of another maker.

Every request that a listener of ours serves is drawn in every version that both know, and so is its
response. The same fields are written by both and read by both: the bytes must be equal, and so must
what is read. kio makes its classes from Kafka's schemas, too, but shares no code with ours.
"""
