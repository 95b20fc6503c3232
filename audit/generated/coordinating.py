"""What services coordinate by the controllers: a lock, an election, a group, and keys.

Rule: a service does what a client of coordination does: it opens a session, renews it, enters,
leaves. When it falls silent, the controllers end its session, and the next in line is granted.
"""

from functools import partial
from typing import Any, Final

from audit.generated.people import CONNECT, DEPLOY_BOT, SCHEDULERS, TOPIC_OPERATOR, Actor
from audit.generated.rhythm import HOUR_MS, MINUTE_MS, SECOND_MS
from audit.generated.stage import Stage, Story, Then
from metadata import messages
from metadata.messages import KeyOperation, ResourceKind

_TTL_MS: Final = 10 * MINUTE_MS
_RENEWED_MS: Final = 8 * MINUTE_MS
_WORKERS: Final = ("worker-1", "worker-2", "worker-3")
_KEYS: Final = ("pricing/table", "search/index", "mobile/flags", "web/banner", "fraud/rules")
_COPIED: Final = messages.CommitRequest(
    operations=tuple(KeyOperation("put", key, b"1") for key in _KEYS), tokens_above=1_000_000
)
_LOCK: Final[tuple[ResourceKind, str]] = "lock", "deployments"
_ELECTION: Final[tuple[ResourceKind, str]] = "election", "nightly-jobs"
_GROUP: Final[tuple[ResourceKind, str]] = "group", "connect-workers"


def begin(stage: Stage) -> None:
    """Services come up: two schedulers run for an election, workers form a group."""
    reason = "copied from the old store, with its tokens"
    stage.ask(TOPIC_OPERATOR, "commit_keys", _COPIED, reason)
    for actor in SCHEDULERS:
        _enter(stage, actor, _ELECTION, actor.client_id)
    for worker in _WORKERS:
        _enter(stage, CONNECT, _GROUP, worker)


def begin_deployment(stage: Stage, release: str) -> Then:
    """Take the lock of deployments, and note the release; returns what gives the lock back."""
    entered = _enter(stage, DEPLOY_BOT, _LOCK, "deploy-bot")
    session_id = stage.cast.sessions["deploy-bot"]
    put = KeyOperation("upsert", "deployments/release", release.encode())
    fence = messages.TokenFence(*_LOCK, entered.token)
    request = messages.CommitRequest((put,), fences=(fence,), session_id=session_id)
    stage.ask(DEPLOY_BOT, "commit_keys", request, "rolling restart begins")

    def release_lock() -> None:
        leave = messages.LeaveRequest(*_LOCK, "deploy-bot", session_id)
        stage.may_ask(DEPLOY_BOT, "leave", leave)
        _end(stage, DEPLOY_BOT, "deploy-bot")

    return release_lock


def change(stage: Stage) -> None:
    """A service changes a key or what it says of itself, or goes and comes back."""
    dice, sessions = stage.dice, stage.cast.sessions
    throw = dice.below(10)
    if throw < 6:
        _change_key(stage)
    elif throw < 8:
        worker = dice.pick(_WORKERS)
        if worker in sessions:
            data = dice.some_bytes(12)
            request = messages.ChangeEntryRequest(*_GROUP, worker, sessions[worker], data)
            stage.may_ask(CONNECT, "change_entry", request)
    elif throw < 9:
        worker = dice.pick(_WORKERS)
        if worker in sessions:
            _end(stage, CONNECT, worker)
            delay_ms = 20 * SECOND_MS + dice.around(MINUTE_MS)
            stage.after(delay_ms, partial(_enter, stage, CONNECT, _GROUP, worker))
    else:
        # A scheduler hangs: its session ends, and the other one leads.
        actor = dice.pick(SCHEDULERS)
        if sessions.pop(actor.client_id, None) is not None:
            stage.after(HOUR_MS, partial(_enter, stage, actor, _ELECTION, actor.client_id))


def _change_key(stage: Stage) -> None:
    dice, cast = stage.dice, stage.cast
    key = dice.pick(_KEYS)
    cast.key_changes += 1
    present = stage.image.coordination.keys.get(key)
    if present is None:
        operation = KeyOperation("put", key, b"%d" % cast.key_changes)
    elif dice.chance(0.15):
        operation = KeyOperation("delete", key, expect=present.mod_revision)
    else:
        value = b"%d %s" % (cast.key_changes, dice.some_bytes(24).hex().encode())
        operation = KeyOperation("update", key, value, expect=present.mod_revision)
    stage.ask(TOPIC_OPERATOR, "commit_keys", messages.CommitRequest((operation,)))


def _enter(stage: Stage, actor: Actor, resource: tuple[ResourceKind, str], client: str) -> Any:
    """Open a session, keep it open until the client is gone, and enter with it."""
    opened = messages.OpenSessionRequest(_TTL_MS, client)
    reply: Any = stage.ask(actor, "open_session", opened).reply
    session_id: str = reply.session_id
    stage.cast.sessions[client] = session_id
    stage.play(_renewed(stage, client, session_id))
    request = messages.EnterRequest(*resource, client, session_id)
    return stage.ask(actor, "enter", request).reply


def _renewed(stage: Stage, client: str, session_id: str) -> Story:
    yield _RENEWED_MS
    while stage.cast.sessions.get(client) == session_id:
        stage.rehearsal.renew(session_id)
        yield _RENEWED_MS


def _end(stage: Stage, actor: Actor, client: str) -> None:
    session_id = stage.cast.sessions.pop(client)
    stage.ask(actor, "end_session", messages.EndSessionRequest(session_id))
