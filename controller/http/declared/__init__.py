"""The routes of declared state: `POST /v1/apply` and `GET /v1/export`.

`routes` is their part of the table, and `answers` lists what answers them. Door: `routes` and
`answers`.
"""
