"""Lists of topics and configs for an asker who may see some of them only (ADR 0092).

Rule: a page has as many entries as it may have, or the list is at its end. So neither a short page
nor its token says anything about names that the asker may not see. Names are looked at in steps:
there may be a million that are not shown.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Final, TypeVar

from controller.access.listing import ListFilter
from controller.http.describe import readable_offset, summarize_topic
from controller.http.describe_configs import (
    RESOURCES_LISTED_MAX,
    configs_behind,
    configs_reply,
    configs_wanted,
)
from controller.http.node_view import View
from controller.http.pages import Pages
from controller.http.queries import TOPICS_LISTED_MAX, limit_of
from metadata.image.configs import ConfigResource
from metadata.messages import ListTopicsReply
from metadata.messages.parts import LongMessage
from metadata.records import AclResourceType, ConfigResourceType

Steps = Generator[None, None, LongMessage]
T = TypeVar("T")
_STEP: Final = 64
"""Names that are looked up between two yields. A look-up costs by the name's length."""
_KINDS: Final[Mapping[int, AclResourceType]] = {
    ConfigResourceType.TOPIC: AclResourceType.TOPIC,
    ConfigResourceType.GROUP: AclResourceType.GROUP,
}
"""What has configs and rights of its own. All else is the cluster's."""


def list_shown_topics(
    view: View, query: Mapping[str, str], pages: Pages, shown: ListFilter
) -> Steps:
    """`GET /v1/topics`. Raises LogbergError at once."""
    image = view.image
    limit = limit_of(query, TOPICS_LISTED_MAX) or TOPICS_LISTED_MAX
    after = pages.last(query, "topics", str) or query.get("after", "")

    def steps() -> Steps:
        behind = image.topics.names.after(after)
        found = yield from first_that(
            behind, limit + 1, lambda name: shown.shows(AclResourceType.TOPIC, name)
        )
        names, more = found[:limit], found[limit - 1] if len(found) > limit else None
        head = ListTopicsReply(
            offset=readable_offset(image),
            epoch=image.epoch,
            age_ms=view.age_ms,
            topics=(),
            next_after=more,
            continuation=None if more is None else pages.token(image, "topics", more),
        )
        topics = (summarize_topic(image, name) for name in names)
        return LongMessage(head, "topics", topics, len(names))

    return steps()


def list_shown_configs(
    view: View, query: Mapping[str, str], pages: Pages, shown: ListFilter
) -> Steps:
    """`GET /v1/configs`. Raises LogbergError at once."""
    wanted = configs_wanted(query)
    limit = limit_of(query, RESOURCES_LISTED_MAX) or RESOURCES_LISTED_MAX
    behind = configs_behind(view.image, wanted, query, pages)

    def shows(resource: ConfigResource) -> bool:
        kind = _KINDS.get(resource[0])
        return kind is not None and shown.shows(kind, resource[1])

    def steps() -> Steps:
        found = yield from first_that(behind, limit + 1, shows)
        return configs_reply(view, wanted, pages, found, limit)

    return steps()


def first_that(
    candidates: Iterable[T], count: int, shows: Callable[[T], bool]
) -> Generator[None, None, list[T]]:
    """Return the first so many that are shown."""
    found: list[T] = []
    for looked_at, one in enumerate(candidates, start=1):
        if shows(one):
            found.append(one)
            if len(found) == count:
                break
        if looked_at % _STEP == 0:
            yield
    return found
