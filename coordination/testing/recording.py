"""Listeners of KIP-30's style that note what they are told."""


class RecordingListener:
    """Notes every value, key set or set of members; subclass it to do more with a value."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.key_sets: list[frozenset[str]] = []
        self.groups: list[frozenset[str]] = []

    async def value_changed(self, value: bytes | None, /) -> None:
        """Note a value."""
        self.values.append(value)

    async def key_set_changed(self, keys: frozenset[str], /) -> None:
        """Note a namespace's keys."""
        self.key_sets.append(keys)

    async def on_group_change(self, members: frozenset[str], /) -> None:
        """Note a group's members."""
        self.groups.append(members)

    @property
    def last(self) -> bytes | None:
        """The last value; None: there is none, or nothing was heard yet."""
        return self.values[-1] if self.values else None
