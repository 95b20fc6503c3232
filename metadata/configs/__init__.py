"""Kafka's configs: keys, types, defaults, limits, and the source of an effective value.

- `definitions`: what Kafka itself defines, as data.
- `values`: checks one value against its definition.
- `checks`: checks all configs of one resource together.
- `effective`: finds the value that applies, and its source.

Rule: everything here is a pure function of the configs. Replay does not use it: the leader that
wrote a config has checked it.
"""
