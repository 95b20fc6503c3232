"""A cluster of real processes for tests, and an HTTP client that shows every byte it gets.

Rule: the cluster is `logberg.local.local_cluster`'s, as `up` runs it, with settings of a test's own
where it needs them. What was acknowledged is remembered, and `check_nothing_lost` looks for it.
"""

import http.client
import json
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from audit.places.replicas import one_replica
from logberg.local.child import Child
from logberg.local.issued_tokens import ADMIN
from logberg.local.local_cluster import LocalCluster, Timing
from logberg.local.ports import free_port_base
from tests.checkers.principals import false_principals

T = TypeVar("T")

PATIENCE_S = 40.0
POLL_S = 0.05


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: Any
    headers: dict[str, str]


class Said(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


class _Configured(LocalCluster):
    """A local cluster whose controllers and brokers have settings of their own."""

    extra: dict[str, Any]
    extra_of_brokers: dict[str, Any]

    def _controller_config(
        self, n: int, pair: tuple[Path, Path], tokens: dict[str, str]
    ) -> dict[str, Any]:
        return {**super()._controller_config(n, pair, tokens), **self.extra}

    def _broker_config(self, n: int, pair: tuple[Path, Path]) -> dict[str, Any]:
        return {**super()._broker_config(n, pair), **self.extra_of_brokers}


class RunningCluster:
    """Controllers and brokers on free ports; not started before `start`."""

    _led = 0
    """The controller that acknowledged the newest topic; 0 before the first one."""

    def __init__(
        self,
        folder: Path,
        controllers: int = 3,
        brokers: int = 0,
        *,
        session_ms: int = 3_000,
        principals: tuple[str, ...] = (),
        of_brokers: dict[str, Any] | None = None,
        kafka: bool = False,
        **settings: Any,
    ) -> None:
        """`settings`: of controllers. `of_brokers`: settings of brokers. `kafka`: their listeners.

        `principals`: others than the administrator for whom there are tokens (`token_of`).
        """
        self.local = _Configured(
            folder,
            controllers,
            brokers,
            free_port_base(),
            Timing(session_ms, session_ms // 6),
            tokens=principals,
            kafka_clients=kafka,
        )
        self.local.extra, self.local.extra_of_brokers = settings, of_brokers or {}
        self.folder = self.local.folder
        self.acknowledged: list[str] = []
        self.timeout_s = 20.0
        """Of one question."""
        self.local.prepare()
        # Commands of the tests find the cluster by it, also while it starts.
        self.local.write_cluster_file()
        self._tokens = {self.token_of(principal): principal for principal in (ADMIN, *principals)}
        self.token = self.token_of(ADMIN)
        self.carriers: dict[str, str] = {}
        """By request id, whose token the request came with."""

    def limit_descriptors(self, count: int) -> None:
        """Let each process have so many descriptors, and no way to more."""
        for child in self.local.children:
            script = f'ulimit -n {count} && exec "$@"'
            child._arguments = ["sh", "-c", script, "sh", *child._arguments]

    def token_of(self, principal: str) -> str:
        """Return the token of a principal."""
        return self.local.token_file(principal).read_text().strip()

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start all, and wait until all controllers answer, one leads and all brokers serve."""
        for child in self.local.children:
            child.start()
        self.until(self.settled, "the cluster is ready")

    def settled(self) -> bool:
        """Whether all processes that should run do what they should."""
        self.check_alive()
        states = [self.status(n) for n in self.local.controllers]
        if not all(states) or not any(state["active"] for state in states):
            return False
        # The repair of a damaged journal ends a moment after the node holds all of the log.
        if any(state["role"] == "damaged" for state in states):
            return False
        return all(self.broker_states().get(n) == "online" for n in self.local.brokers)

    def check_alive(self) -> None:
        for child in self.local.children:
            assert child.exit_code in (None, 0, -9, 74), f"{child.name}: {child.last_words(20)}"

    def stop(self) -> None:
        for child in self.local.children:
            child.signal(signal.SIGCONT)
        assert self.local.stop(20.0) == [], "a process had to be ended by force"

    def kill(self) -> None:
        """End everything at once, whatever happened."""
        for child in self.local.children:
            child.kill()

    def controller(self, n: int) -> Child:
        return self.local.controllers[n]

    def data(self, n: int) -> Path:
        """A controller's folder."""
        return self.folder / f"controller-{n}"

    def output(self, name: str) -> str:
        path = self.folder / "output" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # -- asking ----------------------------------------------------------------------------------

    def context(self, cert: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.local.file.ca)
        if cert is not None:
            context.load_cert_chain(cert, key or cert.with_suffix(".key"))
        return context

    def ask(
        self,
        url: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = "",
        cert: Path | None = None,
        headers: dict[str, str] | None = None,
        timeout_s: float | None = None,
        source: str | None = None,
    ) -> Answer:
        """Ask once. `token`: blank is the administrator's, None is none. Raises OSError.

        `source`: the address to ask from.
        """
        sent = {"accept": "application/json", **(headers or {})}
        if token is not None and cert is None:
            sent["authorization"] = f"Bearer {token or self.token}"
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("content-type", "application/json")
        host = url.removeprefix("https://")
        connection = http.client.HTTPSConnection(
            host,
            timeout=timeout_s or self.timeout_s,
            context=self.context(cert),
            source_address=None if source is None else (source, 0),
        )
        try:
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            raw = answer.read()
            found = {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()
        request_id = found.get("x-logberg-request-id")
        if request_id is not None and token is not None and cert is None:
            carrier = self._tokens.get(token or self.token, "nobody")
            self.carriers.setdefault(request_id, carrier)
        is_json = found.get("content-type", "").startswith("application/json")
        return Answer(answer.status, json.loads(raw) if is_json and raw else raw, found)

    def url(self, n: int) -> str:
        return self.local.controller_url(n)

    def status(self, n: int) -> dict[str, Any] | None:
        """A controller's own word; None when it doesn't answer."""
        try:
            answer = self.ask(self.url(n), "GET", "/v1/status")
        except OSError:
            return None
        body: dict[str, Any] = answer.body
        return body if answer.status == 200 else None

    def leader(self, *, but: int | None = None) -> int:
        """Wait for an active controller."""

        def look() -> int:
            for n in self.local.controllers:
                if n != but and self.controller(n).running:
                    found = self.status(n)
                    if found is not None and found["active"]:
                        return n
            return 0

        return self.until(look, f"a controller (not {but}) is active")

    def standby(self) -> int:
        leader = self.leader()
        return next(n for n in self.local.controllers if n != leader)

    def broker_states(self) -> dict[int, str]:
        """States by broker id, as the active controller says; empty when nobody does."""
        for n in self.local.controllers:
            with suppress(OSError):
                found = self.ask(self.url(n), "GET", "/v1/brokers")
                if found.status == 200:
                    return {b["brokerId"]: b["state"] for b in found.body["brokers"]}
        return {}

    def create(self, name: str, *, partitions: int = 1, replication_factor: int = 1) -> None:
        """Create a topic at whichever controller leads, and remember it once it is acknowledged."""
        new = {
            "name": name,
            "numPartitions": partitions,
            "replicationFactor": replication_factor,
        }

        def attempt() -> bool:
            # A frozen one would let us wait for its answer.
            for n in sorted(self.local.controllers, key=lambda n: n != self._led):
                if not self.controller(n).running:
                    continue
                with suppress(OSError):
                    answer = self.ask(self.url(n), "POST", "/v1/topics", {"topics": [new]})
                    # Our own request of before, whose answer was lost.
                    exists = answer.body.get("code") == "TOPIC_ALREADY_EXISTS"
                    if answer.status == 200 or exists:
                        self._led = n
                        return True
                    assert answer.status in (421, 503, 507), answer
            return False

        self.until(attempt, f"topic {name} is created")
        self.acknowledged.append(name)

    def topics(self) -> set[str]:
        names: set[str] = set()
        more = "/v1/topics"
        while more:
            answer = self.ask(self.url(self.leader()), "GET", more)
            assert answer.status == 200, answer
            names |= {topic["name"] for topic in answer.body["topics"]}
            after = answer.body["nextAfter"]
            more = "" if after is None else f"/v1/topics?after={after}"
        return names

    def until(self, look: Callable[[], T], what: str, patience_s: float = PATIENCE_S) -> T:
        """Return what `look` finds, once it is true."""
        until = time.monotonic() + patience_s
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > until:
                raise AssertionError(f"never: {what}\n{self.picture()}")
            time.sleep(POLL_S)

    def picture(self) -> str:
        """How everybody is, for a message."""
        keys = ("role", "active", "leaderEpoch", "logEnd", "note")
        lines = []
        for n in self.local.controllers:
            status = self.status(n) or {}
            lines.append(f"controller {n}: { {key: status.get(key) for key in keys} }")
        lines += [f"{c.name}: …{c.last_words(3)[-600:]}" for c in self.local.children]
        return "\n".join(lines)

    # -- commands --------------------------------------------------------------------------------

    def command(self, *arguments: str) -> Said:
        """Run a command on this cluster's folder, from within it."""
        return logberg(*arguments, cwd=self.folder)

    def caught_up(self) -> bool:
        """Every controller answers and holds as much as the others."""
        ends = {(self.status(n) or {"logEnd": -n})["logEnd"] for n in self.local.controllers}
        return len(ends) == 1

    def check_nothing_lost(self) -> None:
        """All that was acknowledged is there, on every controller's disk, in one history."""
        self.until(self.caught_up, "every controller has caught up")
        assert set(self.acknowledged) <= self.topics()
        self.stop()
        verified = logberg("log", "verify", str(self.folder), "--output", "json")
        assert verified.code == 0, verified
        assert json.loads(verified.out)["ok"]
        replayed = logberg("log", "replay", str(self.folder), "--output", "json")
        assert replayed.code == 0, replayed
        states = json.loads(replayed.out)
        assert len(states) == len(self.local.controllers)
        assert len({state["stateHash"] for state in states}) == 1
        assert states[0]["topics"] >= len(set(self.acknowledged))
        self.check_principals()

    def check_principals(self) -> None:
        """Every batch says who caused it: whose credential carried the request, or ourselves."""
        for n in self.local.controllers:
            batches = one_replica(str(self.data(n))).reader().batches()
            assert false_principals(batches, self.carriers) == []


def logberg(*arguments: str, cwd: Path | None = None, timeout_s: float = 60.0) -> Said:
    """Run a command of the command line."""
    done = subprocess.run(
        [sys.executable, "-m", "logberg", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        cwd=cwd,
    )
    return Said(done.returncode, done.stdout, done.stderr)


@contextmanager
def running(folder: Path, controllers: int = 3, brokers: int = 0, **settings: Any) -> Iterator[Any]:
    """A started cluster; nothing of it is left running."""
    cluster = RunningCluster(folder, controllers, brokers, **settings)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()
