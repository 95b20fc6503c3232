"""Decisions about the bridge to a store that is moved here (ADR 0062).

`gate` refuses what only the source may change. `bridging` decides about steps and modes, and
`mirroring` compares what the source has with an image. Door: `gate` and `bridging`.
"""
