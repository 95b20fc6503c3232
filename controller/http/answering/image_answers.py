"""Answers who reads topics, brokers, configs or feature levels, from an image.

A list has what its asker may see. That is decided when the image is read, by the newest entries.
"""

from collections.abc import Callable, Generator

from controller.access.listing import ListFilter
from controller.http.call import Answers, Call
from controller.http.describe_configs import list_configs, one_config
from controller.http.node_view import NodeView, View
from controller.http.queries import (
    Queries,
    list_brokers,
    list_features,
    list_topics,
    one_broker,
    one_topic,
)
from controller.http.shown_lists import list_shown_configs, list_shown_topics
from metadata.errors import LogbergError
from metadata.messages.parts import LongMessage


class ImageAnswers:
    """Answers such reads. `_list_topics` answers the route named list_topics, and so on."""

    def __init__(self, node: NodeView, queries: Queries) -> None:
        self._node = node
        self._queries = queries

    def table(self) -> Answers:
        """Return the answers by the names of their routes."""
        return {
            "list_topics": self._list_topics,
            "describe_topic": self._describe_topic,
            "list_brokers": self._list_brokers,
            "describe_broker": self._describe_broker,
            "list_features": self._list_features,
            "list_configs": self._list_configs,
            "describe_config": self._describe_config,
        }

    def _list_topics(self, call: Call) -> None:
        query, pages = call.request.query, self._queries.pages
        self._read_list(
            call,
            lambda view: list_topics(view, query, pages),
            lambda view, shown: list_shown_topics(view, query, pages, shown),
        )

    def _describe_topic(self, call: Call) -> None:
        name, query, pages = call.arguments["name"], call.request.query, self._queries.pages
        self._queries.read(
            call.request, lambda view: one_topic(view, name, query, pages), call.answer
        )

    def _list_brokers(self, call: Call) -> None:
        query, pages = call.request.query, self._queries.pages
        self._queries.read(call.request, lambda view: list_brokers(view, query, pages), call.answer)

    def _describe_broker(self, call: Call) -> None:
        text = call.arguments["id"]
        self._queries.read(call.request, lambda view: one_broker(view, text), call.answer)

    def _list_features(self, call: Call) -> None:
        voters = self._node.voters()
        self._queries.read(call.request, lambda view: list_features(view, voters), call.answer)

    def _list_configs(self, call: Call) -> None:
        query, pages = call.request.query, self._queries.pages
        self._read_list(
            call,
            lambda view: list_configs(view, query, pages),
            lambda view, shown: list_shown_configs(view, query, pages, shown),
        )

    def _describe_config(self, call: Call) -> None:
        kind, name = call.arguments["type"], call.arguments["name"]
        own = self._node.leader.own_configs
        self._queries.read(
            call.request, lambda view: one_config(view, kind, name, own), call.answer
        )

    def _read_list(
        self,
        call: Call,
        everything: Callable[[View], LongMessage],
        some: Callable[[View, ListFilter], Generator[None, None, LongMessage]],
    ) -> None:
        """Answer with a list: with all of it, or with what the asker may see of it."""

        def answer(view: View) -> LongMessage | Generator[None, None, LongMessage]:
            shown = call.shown()
            return everything(view) if shown is None else some(view, shown)

        def on_answer(
            outcome: LongMessage | Generator[None, None, LongMessage] | LogbergError,
        ) -> None:
            if isinstance(outcome, Generator):
                call.answer_later(outcome)
            else:
                call.answer(outcome)

        self._queries.read_either(call.request, answer, on_answer)
