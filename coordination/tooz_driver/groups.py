"""tooz's groups, as keys and groups of ours.

Rules:

- A group is there or not. It is a key, and its members are members of a group of ours. A member
  enters first and then writes the group's key; whoever deletes a group reads the key, looks for
  members, and deletes the key if nobody has written it since. So no group goes with a member in it.
- Anybody who has a member's id can make it leave. Our store lets only the session itself do that.
  So `leave` notes the membership's token as revoked, and all drivers pass over it.
"""

from typing import Final

from tooz import coordination, utils
from tooz.coordination import Capabilities

from coordination.coordinator import Coordinator
from coordination.errors import KeyExists, KeyMissing, MemberExists, NotHeld, RevisionMismatch
from coordination.tooz_driver.translating import as_bytes, as_text, from_text
from coordination.types import Member

_GROUPS: Final = "groups"
_REVOKED: Final = "revoked"


class ToozGroups:
    """All groups, as one member asks for them. Its methods raise tooz's errors and ours."""

    def __init__(self, client: Coordinator, member_id: bytes) -> None:
        self._client = client
        self._storage = client.storage
        self._member_id = member_id
        self._me: Final = as_text(member_id)

    async def create(self, group_id: bytes) -> None:
        """Make a group. Raises GroupAlreadyExist."""
        try:
            await self._storage.put(_key(_GROUPS, group_id), b"")
        except KeyExists as error:
            raise coordination.GroupAlreadyExist(group_id) from error

    async def delete(self, group_id: bytes) -> None:
        """Delete a group without members. Raises GroupNotCreated, GroupNotEmpty."""
        while True:
            record = await self._storage.fetch(_key(_GROUPS, group_id))
            if record is None:
                raise coordination.GroupNotCreated(group_id)
            if await self._present(group_id):
                raise coordination.GroupNotEmpty(group_id)
            try:
                await self._storage.delete(record.key, expect=record.mod_revision)
            except RevisionMismatch:
                continue  # Somebody joined in between.
            async for revoked in self._storage.list(_key(_REVOKED, group_id), keys_only=True):
                await self._storage.delete(revoked.key)
            return

    async def ids(self) -> list[bytes]:
        """Return the ids of all groups."""
        records = self._storage.list(_GROUPS, keys_only=True)
        return [from_text(record.key.partition("/")[2]) async for record in records]

    async def join(self, group_id: bytes, capabilities: Capabilities | None) -> None:
        """Join a group. Raises GroupNotCreated, MemberAlreadyExist."""
        if self._member_id in await self.members(group_id):
            raise coordination.MemberAlreadyExist(group_id, self._member_id)
        group = self._client.group(as_text(group_id))
        await group.leave(self._me)  # A membership of ours that was revoked.
        try:
            await group.join(self._me, utils.dumps(capabilities))
        except MemberExists as error:
            raise coordination.MemberAlreadyExist(group_id, self._member_id) from error
        try:
            await self._storage.update(_key(_GROUPS, group_id), b"")
        except KeyMissing as error:
            await group.leave(self._me)
            raise coordination.GroupNotCreated(group_id) from error

    async def leave(self, group_id: bytes) -> None:
        """Leave a group. Raises GroupNotCreated, MemberNotJoined."""
        member = (await self.members(group_id)).get(self._member_id)
        left = await self._client.group(as_text(group_id)).leave(self._me)
        if member is None:
            raise coordination.MemberNotJoined(group_id, self._member_id)
        if not left:
            key = f"{_key(_REVOKED, group_id)}/{self._me}"
            await self._storage.upsert(key, str(member.token))

    async def update(self, group_id: bytes, capabilities: Capabilities) -> None:
        """Change our capabilities. Raises GroupNotCreated, MemberNotJoined."""
        await self.member(group_id, self._member_id)
        group = self._client.group(as_text(group_id))
        try:
            await group.update(self._me, utils.dumps(capabilities))
        except NotHeld as error:
            raise coordination.MemberNotJoined(group_id, self._member_id) from error

    async def member(self, group_id: bytes, member_id: bytes) -> Member:
        """Return one member. Raises GroupNotCreated, MemberNotJoined."""
        members = await self.members(group_id)
        try:
            return members[as_bytes(member_id)]
        except KeyError as error:
            raise coordination.MemberNotJoined(group_id, member_id) from error

    async def members(self, group_id: bytes) -> dict[bytes, Member]:
        """Return the members of a group, all of one moment. Raises GroupNotCreated."""
        if await self._storage.fetch(_key(_GROUPS, group_id)) is None:
            raise coordination.GroupNotCreated(group_id)
        return await self._present(group_id)

    async def _present(self, group_id: bytes) -> dict[bytes, Member]:
        """Return the members of a group, without those whose membership was revoked."""
        members = await self._client.group(as_text(group_id)).membership()
        revoked: dict[str, int] = {}
        if members:
            records = self._storage.list(_key(_REVOKED, group_id))
            revoked = {r.key.rpartition("/")[2]: int(r.value) async for r in records}
        return {
            from_text(name): member
            for name, member in members.items()
            if member.token > revoked.get(name, -1)
        }


def _key(folder: str, group_id: bytes) -> str:
    return f"{folder}/{as_text(group_id)}"
