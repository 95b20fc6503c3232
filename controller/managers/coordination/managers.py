"""The managers of this room, made together."""

from controller.config import CoordinationLimits
from controller.managers.coordination.entries import EntryManager
from controller.managers.coordination.keys import KeyManager
from controller.managers.coordination.sessions import SessionManager
from runtime.randomness import Random


class CoordinationManagers:
    """One manager for each kind of thing."""

    def __init__(self, random: Random, limits: CoordinationLimits) -> None:
        """`random` draws the ids of sessions."""
        self.limits = limits
        self.sessions = SessionManager(random, limits)
        self.entries = EntryManager(limits)
        self.keys = KeyManager(limits)
