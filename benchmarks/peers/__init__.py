"""Logberg beside etcd, ZooKeeper and Kafka's controllers, all in one run on one machine.

`tools` builds and fetches what is compared. `services` starts three nodes of each. `driving` lets
the load generator, a Go program in `go/load`, work on one of them. `rows` says what is measured and
which ratio is asked for. `judging` compares, and `page` shows the table and the picture.
"""
