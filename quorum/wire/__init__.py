"""Bytes between nodes: the codec, the formats, the frames.

Here lives how a link's bytes are read and written, as pure functions; nothing here keeps a state or
knows a node. Door: every module.
"""
