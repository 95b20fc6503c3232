"""Whose view of the quorum a command shows.

Rule: only the leader knows how far the others are. So the leader is asked; where there is none, a
controller that answers.
"""

import asyncio

from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.cluster_view import is_leaders
from metadata.messages.quorum import QuorumMember, QuorumReply
from runtime.http.origins import may_follow


async def view_of(client: LogbergClient, urls: tuple[str, ...], node: int | None) -> QuorumReply:
    """The leader's view of the quorum, else that of a controller that answers.

    `node`: that controller's own view. Raises ClientError when nobody answers, or not that node.
    """
    found = await asyncio.gather(*(_view_from(client, url) for url in urls))
    views = [view for view in found if isinstance(view, QuorumReply)]
    if node is not None:
        wanted = next((view for view in views if view.node_id == node), None)
        if wanted is None:
            known = ", ".join(str(view.node_id) for view in views) or "none"
            message = f"controller {node} does not answer; those that do: {known}"
            raise ClientError("NO_ANSWER", message)
        return wanted
    if not views:
        # With the patience and the words of every other question.
        views = [await client.quorum()]
    newest = max(views, key=lambda view: (view.leader_epoch, is_leaders(view)))
    leader_url = newest.leader_url
    if not is_leaders(newest) and leader_url and may_follow(urls[0], leader_url):
        leaders = await _view_from(client, leader_url)
        if isinstance(leaders, QuorumReply):
            return leaders
    return newest


async def _view_from(client: LogbergClient, url: str) -> QuorumReply | ClientError:
    try:
        return await client.from_one(url, "/v1/quorum", QuorumReply)
    except ClientError as error:
        return error


def runs(member: QuorumMember, view: QuorumReply) -> bool:
    """Whether the leader has a link with it, or it is the leader."""
    return member.wire_format > 0 or (
        member.node_id == view.node_id and member.directory_id == view.directory_id
    )
