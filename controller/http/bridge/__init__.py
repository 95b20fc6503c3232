"""The routes of the bridge: `/v1/bridge`.

`routes` is its part of the table, and `answers` lists what answers it. Door: `routes` and
`answers`.
"""
