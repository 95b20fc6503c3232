"""The routes of coordination: sessions, entries, keys and watches (KIP-30, ADR 0055).

`routes` is their part of the table. `changes` and `reads` answer them, and `answers` lists which
function answers which route. `feed` keeps the newest changes, `watches` answers with them, and
`waiting` knows who waits for which. Door: `routes`, `answers`, `feed` and `watches`.
"""
