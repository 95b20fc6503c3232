"""The committed metadata log on disk: batches, the fence, the hash chain, segments.

Rule: payloads are opaque here; what a record means is `metadata`'s business.
"""
