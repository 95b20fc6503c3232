"""The managers of this room, made together."""

from controller.managers.clients.acls import AclManager
from runtime.randomness import Random


class ClientManagers:
    """One manager for each kind of record."""

    def __init__(self, random: Random) -> None:
        """`random` draws uuids."""
        self.acls = AclManager(random)
