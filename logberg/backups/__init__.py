"""Backups: one self-checking file with a cluster's ledger and newest checkpoint, and its restore.

Rule: nothing is restored from a backup before its last byte is verified, and nothing is written
over. `backup_format` says what the bytes are; `reading` verifies them. `sources` is where a backup
comes from (a node's folder, or running controllers), `places` where it goes (a folder, or object
storage). `making` writes one, `store` lists and thins out those of a place, `restoring` makes the
folders of a new generation of the cluster (`generation`), `drill` proves that a backup can be
restored, and `schedule` says when a controller makes one. ADR 0078 says why.
"""
