"""Kafka's server.properties as a source of settings.

- `syntax` reads the file as Java does, and says where each value came from.
- `key_groups` says what Logberg does with each key; `key_groups.toml` is the table.
- `sources` gathers the values of file, environment and command line, and checks them.
- `addresses` reads lists of listeners and voters.
- `translation` turns values into our own settings.

Rule: a key that Kafka knows is never dropped in silence. It is used, or the log says why not, or
the node doesn't start.
"""
