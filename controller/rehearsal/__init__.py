"""A rehearsal of the controllers: leaders that decide, seal and replay, without quorum or network.

Here lives what stands in for the world: a clock that its owner moves, and a quorum that commits at
once. The leader is the real one (`controller.leader`), and so are its decisions. For histories that
are made up (`audit.generated`). Door: `rehearsal` and `brokers`.
"""
