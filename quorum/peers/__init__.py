"""What happens on the links: they open and end, choose a wire format, carry frames and files.

This room takes each frame from its link to the part that handles it. It reads and writes no bytes;
`quorum.wire` does. Door: every module, for `quorum.node` alone.
"""
