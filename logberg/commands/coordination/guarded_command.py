"""A command that runs while this process holds a grant: a lock, or a leadership.

Rule: the command has ended before anybody else can have the grant. So when the session can't be
kept, the command gets SIGTERM and then SIGKILL within the session's safety margin, while the
controllers still count the session's ttl. Only where an administrator took the grant away may
another holder begin while the command still ends: what it writes then, its token must refuse.

The command has a session of its own, so that a signal reaches all its processes, and the kernel
kills it if this process is killed. A terminal's Ctrl-C comes to this process, which hands it on.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence

from coordination.holding import HeldGrant
from logberg.cli.failure import Failure
from logberg.commands.coordination.signal_routes import SignalRoute
from runtime.parent_death import die_with

FENCE = "LOGBERG_FENCING_TOKEN"
"""The variable in which a command finds the fencing token of what it runs under."""


class NotFoundFailure(Failure):
    """There is no such command; the exit code is that of a shell."""

    exit_code = 127


class NotExecutableFailure(Failure):
    """The command can't be started; the exit code is that of a shell."""

    exit_code = 126


async def run_while_held(
    grant: HeldGrant,
    command: Sequence[str],
    variables: Mapping[str, str],
    grace_s: float,
    signals: SignalRoute,
) -> int:
    """Run a command to its end, and return its exit code as a shell does.

    `variables` come to its environment. `grace_s`: seconds from SIGTERM to SIGKILL once the grant
    is lost. Raises Failure if it can't be started, or was ended for a lost grant.
    """
    child = await _start(command, {**variables, FENCE: str(grant.token)})
    ended = asyncio.create_task(child.wait())
    lost = asyncio.create_task(grant.lost.wait())
    try:
        with signals.to(lambda number: _signal(child.pid, number)):
            await asyncio.wait({ended, lost}, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                await _end(child.pid, ended, grace_s)
                raise _lost(grant, "; the command was ended")
    finally:
        lost.cancel()
        if not ended.done():
            _signal(child.pid, signal.SIGKILL)
            await ended
    code = ended.result()
    return code if code >= 0 else 128 - code


async def hold(grant: HeldGrant, signals: SignalRoute) -> int:
    """Hold a grant until a signal comes. Raises Failure when the grant is lost."""
    stopped = asyncio.Event()
    tasks = [asyncio.create_task(each.wait()) for each in (stopped, grant.lost)]
    with signals.to(lambda _number: stopped.set()):
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    if not stopped.is_set():
        raise _lost(grant)
    return 0


async def _start(
    command: Sequence[str], variables: Mapping[str, str]
) -> asyncio.subprocess.Process:
    parent = os.getpid()
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, **variables},
            start_new_session=True,
            preexec_fn=lambda: die_with(parent),
        )
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        kind = NotFoundFailure if missing else NotExecutableFailure
        raise kind(f"{command[0]} can't be started: {error.strerror}") from None


async def _end(pid: int, ended: "asyncio.Task[int]", grace_s: float) -> None:
    _signal(pid, signal.SIGTERM)
    # A process that is stopped handles SIGTERM only once it goes on.
    _signal(pid, signal.SIGCONT)
    await asyncio.wait({ended}, timeout=grace_s)
    # Also when the command has ended: what it started may still run.
    _signal(pid, signal.SIGKILL)
    await ended


def _lost(grant: HeldGrant, more: str = "") -> Failure:
    return Failure(f"{grant.signal.make_error()}{more}")


def _signal(pid: int, number: int) -> None:
    """Send a signal to a command and all that it started."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        return
