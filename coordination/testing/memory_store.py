"""The memory backend as a store under test, with links that fail as a network would.

Its clients go through `FaultyBackend`: without a server there is nothing for a proxy to cut. They
find their link by the option `link`, since a backend is made from its URL and its options alone.
"""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from coordination.backend import Backend, BackendSettings
from coordination.backends import memory
from coordination.backends.memory.store import find_store
from coordination.connect import connect
from coordination.testing.faults import FaultyBackend, FaultyLink
from coordination.testing.store import Ability, ClientPlan, TcpStore, WiredClient
from coordination.types import Revision, SessionId

_LINKS: Final[dict[str, FaultyLink]] = {}
_turns = itertools.count()


def make_faulty_backend(settings: BackendSettings) -> Backend:
    """Return a connection to a store in memory, behind the link that the option `link` names."""
    options = dict(settings.options)
    link = _LINKS[options.pop("link")]
    inner = memory.make_backend(
        replace(settings, scheme="memory", endpoints=(options.pop("store"),), options=options)
    )
    return FaultyBackend(inner, link, settings.request_timeout_s)


class FaultyMemoryStore(TcpStore):
    """A store in this process, kept as long as this object."""

    name = "memory"
    ttl = 0.8
    request_timeout = 0.8
    abilities = frozenset({Ability.CUT, Ability.EXPIRE, Ability.COMPACT, Ability.COUNT_WATCHES})
    lacks: Mapping[Ability, str] = MappingProxyType(
        dict.fromkeys(set(Ability) - abilities, "it lives in this process and has no server")
    )

    def __init__(self) -> None:
        super().__init__()
        self._inner = find_store(self.run_id)

    async def wire(self, plan: ClientPlan) -> WiredClient:
        link = FaultyLink()
        name = f"{self.run_id}-{next(_turns)}"
        _LINKS[name] = link
        opening = connect(
            f"class://{make_faulty_backend.__module__}.{make_faulty_backend.__name__}",
            ttl=plan.ttl,
            namespace=plan.namespace,
            request_timeout=plan.request_timeout,
            link=name,
            store=self.run_id,
            **plan.options,
        )
        return WiredClient(opening, link)

    async def now_revision(self) -> Revision:
        return self._inner.revision

    async def expire(self, session: SessionId) -> None:
        with self._inner.lock:
            self._inner.end_session(session)

    async def compact(self, revision: Revision) -> None:
        with self._inner.lock:
            self._inner.compact(revision)

    async def watches(self) -> int:
        return self._inner.watchers
