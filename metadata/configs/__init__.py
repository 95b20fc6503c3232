"""Kafka's configs: their keys, types, defaults and limits, and where an effective value comes from.

- `definitions`: what Kafka itself defines, as data.
- `values`: one value against its definition.
- `checks`: all configs of one resource against each other.
- `effective`: which value applies, and its source.

Rule: everything here is a pure function of the configs. Replay asks nothing of it: what a log holds
was checked by the leader that wrote it.
"""
