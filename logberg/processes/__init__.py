"""The processes of a node, a controller's and a broker agent's: from settings to an exit code.

Here lives what gives a core its real clock, disk, network and signals, and says who calls it.
Nothing here decides what a request means. Door: `broker_process`, `controller_process` and the
settings, in `settings`.
"""
