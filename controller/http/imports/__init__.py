"""The route of imports: `POST /v1/import`.

`routes` is its part of the table, and `answers` lists what answers it. Door: `routes` and
`answers`.
"""
