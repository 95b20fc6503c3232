"""KIP-273's view: ZooKeeper's requests, as Kafka's broker code makes them, on any of our backends.

`requests` are the nine requests and their responses, `tree` does them in a store, `metastore` adds
handlers, watches and sessions.
"""
