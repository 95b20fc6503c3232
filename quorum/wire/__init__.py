"""The bytes between nodes: codec, formats, frames.

This room holds pure functions that read and write frames. It keeps no state and knows no node.
Door: every module.
"""
