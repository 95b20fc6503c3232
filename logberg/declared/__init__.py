"""Files of declared state: what `logberg apply`, `diff` and `export` read and write.

`documents` reads YAML and knows the line of each value, `entries` says what a file may hold,
`declaration` puts files together into a request, `passwords` looks up passwords, `writing` writes
an export, and `showing` prints a plan. Door: `declaration`, `passwords`, `showing` and `writing`.
"""
