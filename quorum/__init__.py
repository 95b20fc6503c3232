"""Agreement on opaque bytes: Raft by PySyncObj, made safe from outside.

`api` is what others see, and `node` puts the rooms together: `peers` and `membership` on the links,
`guard` around `raft`, and below them `wire` (bytes between nodes) and `journal` (bytes on disk).
"""
