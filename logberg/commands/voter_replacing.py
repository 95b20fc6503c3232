"""The two changes of `logberg quorum replace`: the old folder goes, and the one that runs comes.

Rule: one of them may be made already when it is asked again. So it looks at the voters first.
"""

import time

import msgspec

from logberg.cli.output import note
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.commands.asking_patiently import patiently
from logberg.commands.quorum_view import runs, view_of
from metadata.errors import ErrorCode
from metadata.messages.quorum import ChangeVotersReply, QuorumMember, VoterAction


class Replacement(msgspec.Struct, frozen=True, rename="camel"):
    """What `replace` did, or with `--dry-run` would do."""

    node_id: int
    directory_id: str
    """Of the folder that votes now."""
    steps: tuple[str, ...]
    offset: int
    """Of the last change; -1: none was made."""
    dry_run: bool


class Replacing:
    """Removes the old folder of a node from the voters, and adds the one that it runs on."""

    def __init__(
        self, client: LogbergClient, urls: tuple[str, ...], node: int, reason: str, wait_s: float
    ) -> None:
        self._client = client
        self._urls = urls
        self._node = node
        self._reason = reason
        self._until = time.monotonic() + wait_s

    async def run(self, *, dry_run: bool) -> Replacement:
        """Make both changes, as far as they are not made. Raises ClientError."""
        linked, old = await patiently(self._found, self._left())
        steps = []
        if old is not None:
            steps.append(f"remove the folder {old.directory_id} of controller {self._node}")
        steps.append(f"add its folder {linked.directory_id}")
        offset = -1
        if dry_run:
            if old is not None:
                await self._change(VoterAction.REMOVE, old, dry_run=True)
        else:
            if old is not None:
                await self._change(VoterAction.REMOVE, old)
                note(f"the folder {old.directory_id} of controller {self._node} votes no more")
            offset = (await self._change(VoterAction.ADD, linked)).offset
        return Replacement(self._node, linked.directory_id, tuple(steps), offset, dry_run)

    async def _found(self) -> tuple[QuorumMember, QuorumMember | None]:
        """The node with the folder that it runs on, and with the one that votes.

        Raises ClientError: VOTERS_NOT_READY while the leader doesn't see it.
        """
        view = await view_of(self._client, self._urls, None)
        members = [member for member in view.members if member.node_id == self._node]
        voter = next((member for member in members if member.is_voter), None)
        linked = next((member for member in members if runs(member, view)), None)
        if linked is not None and linked is voter:
            raise ClientError(
                ErrorCode.INVALID_REQUEST.value,
                f"controller {self._node} runs on the folder that votes, {voter.directory_id}: "
                "there is nothing to replace",
            )
        if linked is None:
            raise ClientError(
                ErrorCode.VOTERS_NOT_READY.value,
                f"controller {self._node} is not linked with the leader: start it, with an empty "
                "folder",
            )
        return linked, voter

    async def _change(
        self, action: VoterAction, member: QuorumMember, *, dry_run: bool = False
    ) -> ChangeVotersReply:
        try:
            return await patiently(
                lambda: self._client.change_voters(
                    action,
                    member.node_id,
                    member.directory_id,
                    reason=self._reason or f"replace the folder of controller {self._node}",
                    dry_run=dry_run,
                ),
                self._left(),
            )
        except ClientError as error:
            if error.code != ErrorCode.REQUEST_TIMED_OUT:
                raise
            raise ClientError(
                error.code,
                "outcome unknown: the change may have been made, or not. Run the command again: it "
                "looks at the voters first",
                error.status,
            ) from None

    def _left(self) -> float:
        return max(0.0, self._until - time.monotonic())
