"""Compares what another store held with an image, and decides what is written: `logberg import`.

`importing` puts the kinds together, `imported_topics` and `imported_clients` compare. Rule: what is
here already and differs is a conflict; nothing is overwritten. Door: `importing`.
"""
