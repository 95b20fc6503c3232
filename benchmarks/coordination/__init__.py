"""What coordination costs on our own controllers, on etcd and on ZooKeeper, in one run.

`stores` starts three nodes of each. `hand_over` measures how fast the next candidate leads, and
`candidate` is the process that it kills. `crowd` measures sessions and watches by the thousand, and
`crowd_member` is the process that holds half of them. `judging` has the bounds, `page` the table.
Everything goes through our own client library, on each store.
"""
