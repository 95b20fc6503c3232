"""The routes of imports: `POST /v1/import`, and the parts of large ones.

`routes` is their part of the table, `answers` lists what answers a change, and `parts` keeps parts.
Door: these three.
"""
