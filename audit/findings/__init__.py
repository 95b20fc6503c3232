"""What somebody should look at in a log: findings, ranked, each with its records and its cause.

Rule: events are made from the records that count (`events`, `event_making`), rules are data
(`rules`, `rule_files`, `builtin_rules.toml`), and the watcher makes findings of both (`watcher`).
What it gives depends on the log only, not on how the log was cut into pieces.
`log_findings.of_log` asks all of this of a whole log. `sieve` says which records a caller must keep
that can't hand over all of them.

`access`, `acquaintances`, `gathering`, `refusals`, `settings_watched` and `words` are parts of
these.
"""
