"""What services coordinate by the controllers: a lock, an election, a group, and keys.

Rule: a service does what a client of coordination does: it opens a session, renews it, enters,
leaves. When it falls silent, the controllers end its session, and the next in line is granted.
"""

from typing import Any, Final

from audit.generated.people import CONNECT, DEPLOY_BOT, SCHEDULERS, TOPIC_OPERATOR, Actor
from audit.generated.rhythm import HOUR_MS, MINUTE_MS, SECOND_MS
from audit.generated.stage import Stage, Then
from metadata.messages import (
    ChangeEntryRequest,
    CommitRequest,
    EndSessionRequest,
    EnterRequest,
    KeyOperation,
    LeaveRequest,
    OpenSessionRequest,
    ResourceKind,
    TokenFence,
)

_TTL_MS: Final = 10 * MINUTE_MS
_RENEWED_MS: Final = 8 * MINUTE_MS
_WORKERS: Final = ("worker-1", "worker-2", "worker-3")
_KEYS: Final = ("pricing/table", "search/index", "mobile/flags", "web/banner", "fraud/rules")


class Coordinating:
    """Sessions and what they hold."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._open: dict[str, str] = {}
        """The session of each client that lives."""
        self._changed = 0

    def begin(self) -> None:
        """Services come up: two schedulers run for an election, workers form a group."""
        self._stage.ask(
            TOPIC_OPERATOR,
            "commit_keys",
            CommitRequest(
                operations=tuple(KeyOperation("put", key, b"1") for key in _KEYS),
                tokens_above=1_000_000,
            ),
            "copied from the old store, with its tokens",
        )
        for actor in SCHEDULERS:
            self._run_for_election(actor)
        for worker in _WORKERS:
            self._join(worker)

    def begin_deployment(self, release: str) -> Then:
        """Take the lock of deployments, and note the release; returns what gives the lock back."""
        session_id = self._session(DEPLOY_BOT, "deploy-bot")
        entered = self._enter(DEPLOY_BOT, "lock", "deployments", "deploy-bot", session_id)
        put = KeyOperation("upsert", "deployments/release", release.encode())
        fence = TokenFence("lock", "deployments", entered.token)
        request = CommitRequest((put,), fences=(fence,), session_id=session_id)
        self._stage.ask(DEPLOY_BOT, "commit_keys", request, "rolling restart begins")

        def release_lock() -> None:
            leave = LeaveRequest("lock", "deployments", "deploy-bot", session_id)
            self._stage.may_ask(DEPLOY_BOT, "leave", leave)
            self._end(DEPLOY_BOT, "deploy-bot")

        return release_lock

    def change(self) -> None:
        """A service changes a key or what it says of itself, or goes and comes back."""
        dice = self._stage.dice
        throw = dice.below(10)
        if throw < 6:
            self._change_key()
        elif throw < 8:
            self._say_more(dice.pick(_WORKERS))
        elif throw < 9:
            self._restart(dice.pick(_WORKERS))
        else:
            # A scheduler hangs: its session ends, and the other one leads.
            actor = dice.pick(SCHEDULERS)
            if self._open.pop(actor.client_id, None) is not None:
                self._stage.after(HOUR_MS, lambda: self._run_for_election(actor))

    def _change_key(self) -> None:
        dice = self._stage.dice
        key = dice.pick(_KEYS)
        self._changed += 1
        present = self._stage.image.coordination.keys.get(key)
        if present is None:
            operation = KeyOperation("put", key, b"%d" % self._changed)
        elif dice.chance(0.15):
            operation = KeyOperation("delete", key, expect=present.mod_revision)
        else:
            value = b"%d %s" % (self._changed, dice.some_bytes(24).hex().encode())
            operation = KeyOperation("update", key, value, expect=present.mod_revision)
        self._stage.ask(TOPIC_OPERATOR, "commit_keys", CommitRequest((operation,)))

    def _say_more(self, worker: str) -> None:
        session_id = self._open.get(worker)
        if session_id is not None:
            data = self._stage.dice.some_bytes(12)
            request = ChangeEntryRequest("group", "connect-workers", worker, session_id, data)
            self._stage.may_ask(CONNECT, "change_entry", request)

    def _restart(self, worker: str) -> None:
        if worker in self._open:
            self._end(CONNECT, worker)
            delay_ms = 20 * SECOND_MS + self._stage.dice.around(MINUTE_MS)
            self._stage.after(delay_ms, lambda: self._join(worker))

    def _join(self, worker: str) -> None:
        session_id = self._session(CONNECT, worker)
        self._enter(CONNECT, "group", "connect-workers", worker, session_id)

    def _run_for_election(self, actor: Actor) -> None:
        session_id = self._session(actor, actor.client_id)
        self._enter(actor, "election", "nightly-jobs", actor.client_id, session_id)

    def _session(self, actor: Actor, client: str) -> str:
        """Open a session, and keep it open until the client is gone."""
        stage = self._stage
        reply: Any = stage.ask(actor, "open_session", OpenSessionRequest(_TTL_MS, client)).reply
        session_id: str = reply.session_id
        self._open[client] = session_id

        def renew() -> None:
            if self._open.get(client) == session_id:
                stage.rehearsal.renew(session_id)
                stage.after(_RENEWED_MS, renew)

        stage.after(_RENEWED_MS, renew)
        return session_id

    def _enter(
        self, actor: Actor, kind: ResourceKind, name: str, entry: str, session_id: str
    ) -> Any:
        request = EnterRequest(kind, name, entry, session_id)
        return self._stage.ask(actor, "enter", request).reply

    def _end(self, actor: Actor, client: str) -> None:
        session_id = self._open.pop(client)
        self._stage.ask(actor, "end_session", EndSessionRequest(session_id))
