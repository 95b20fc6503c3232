"""The committed metadata log on disk: batches, the fence, the hash chain and segment files.

Rule: records are opaque bytes here. Only `metadata` knows what a record means.
"""
