"""After any sequence of answers, time-outs, pauses and lies, only a lease allows to serve."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from broker_agent.states import BrokerState
from metadata.errors import ErrorCode
from metadata.messages.fetch import MetadataFetchReply, SeenState, StateAt
from metadata.messages.wire import MSGPACK, decode
from runtime.http.requests import Reply
from tests.unit.broker_agent.fake_cluster import like
from tests.unit.broker_agent.rig import ONE, TWO, Rig

acts = st.one_of(
    st.tuples(st.just("run"), st.floats(0.001, 9.0)),
    st.tuples(st.just("pause"), st.floats(0.001, 12.0)),
    st.tuples(st.just("answer"), st.floats(0.0, 3.0)),
    st.tuples(st.just("fenced"), st.floats(0.0, 3.0)),
    st.tuples(st.just("differ"), st.just(0.0)),
    st.tuples(st.just("session"), st.sampled_from([-1, 3_000, 9_000, 90_000])),
    st.tuples(st.just("refuse"), st.sampled_from([ErrorCode.NO_QUORUM, ErrorCode.THROTTLED])),
    st.tuples(st.just("fail"), st.just(0.0)),
    st.tuples(st.just("oblige"), st.floats(0.1, 4.0)),
    st.tuples(st.just("ready"), st.booleans()),
    st.tuples(st.just("stop"), st.just(0.0)),
    st.tuples(st.just("commit"), st.integers(1, 5)),
    st.tuples(st.just("expel"), st.just(0.0)),
)


class Watch:
    """Knows, from outside, when the last request was sent that the leader answered."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.sent_at = rig.now - rig.agent.freshness_s()
        self.session_ms = 9_000
        rig.controllers.on_settled = self.note
        rig.world.after_event(lambda _process: self.check())

    def note(self, asked, answer) -> None:
        if asked.is_fetch and isinstance(answer, Reply) and answer.status == 200:
            told_ms = decode(MetadataFetchReply, answer.body, MSGPACK).session_timeout_ms
            self.session_ms = min(9_000, told_ms) if told_ms > 0 else 9_000
            self.sent_at = max(self.sent_at, asked.at)

    def check(self) -> None:
        agent = self.rig.agent
        if agent.may_serve():
            age = self.rig.now - self.sent_at
            assert age < 0.8 * self.session_ms / 1000 + 1e-6
            assert agent.state in {BrokerState.ONLINE, BrokerState.STOPPING}
            assert not agent.view.holding
            assert not agent.catching_up.differs
        if agent.state is BrokerState.ONLINE:
            assert agent.image.offset > agent.broker_epoch >= 0


def act_out(rig: Rig, what: str, value) -> None:
    waiting = [asked for asked in rig.controllers.waiting if asked.is_fetch]
    registered = rig.agent.broker_epoch >= 0
    if what == "run":
        rig.run(value)
    elif what == "pause":
        rig.process.pause()
        rig.run(value)
        rig.process.resume()
        # A client's request comes first, before anything that has waited.
    elif what == "oblige":
        rig.active.silent = False
        for asked in waiting:
            rig.active.on_ask(asked)
        rig.run(value)
        rig.active.silent = True
    elif what == "session":
        rig.active.session_ms = value
    elif what == "ready":
        rig.do(lambda: rig.agent.set_host_ready(ready=value))
    elif what == "stop":
        rig.do(rig.agent.stop)
    elif what == "commit":
        rig.log.fill(value)
    elif not waiting:
        return
    elif what == "refuse":
        waiting[-1].refuse(value, leader_epoch=1)
    elif what == "expel":
        waiting[-1].refuse(ErrorCode.STALE_BROKER_EPOCH, leader_epoch=1)
    elif what == "fail":
        waiting[-1].refuse(ErrorCode.NOT_CONTROLLER)
    elif registered:
        reply = rig.active.answer(waiting[-1].fetch)
        if what == "fenced":
            reply = like(reply, state=SeenState.FENCED)
        elif what == "differ":
            wrong = StateAt(offset=rig.log.end, chain_hash=bytes(32), state_hash=bytes(32))
            reply = like(reply, state_hash=wrong)
        waiting[-1].reply(reply, after_s=value)


# The second difference comes with an answer that renews a lease that has run out.
@example([("differ", 0.0), ("oblige", 4.0), ("differ", 0.0), ("pause", 4.0)], 0)
@settings(max_examples=150)
@given(st.lists(acts, max_size=40), st.integers(0, 3))
def test_who_serves_holds_the_lease(steps, seed):
    rig = Rig(seed=seed, urls=(ONE, TWO), registration_limit_ms=10**9)
    rig.online()
    rig.active.silent = True
    watch = Watch(rig)
    for what, value in steps:
        if rig.agent.state is BrokerState.GONE:
            break
        act_out(rig, what, value)
        watch.check()
    if rig.agent.state is not BrokerState.GONE:
        rig.run(12.0)
        assert not rig.agent.may_serve()
