"""Compares what another store held with an image, and decides what is written: `logberg import`.

`importing` puts the kinds together; `imported_topics`, `imported_clients` and `imported_keys`
compare. Rule: what is here already and differs is a conflict; nothing is overwritten. Door:
`importing`.
"""
