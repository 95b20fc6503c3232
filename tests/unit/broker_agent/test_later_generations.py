"""An agent goes over to a later generation of the cluster only for keys that it may believe."""

import pytest

from broker_agent.config import NewGenerations
from broker_agent.states import BrokerState
from ledger.merkle.notes import SigningKey
from tests.unit.broker_agent.fake_cluster import ONE, THREE, TWO, Log
from tests.unit.broker_agent.rig import Rig
from tests.unit.broker_agent.signed_heads import SEEDS, SignedHeads
from tests.unit.broker_agent.test_heads import evidence, forged_log, kept, served_rig

PINNED = tuple(SigningKey("key", seed).public.public for seed in SEEDS)
ALL = (ONE, TWO, THREE)
OTHERS = (7, 8, 9)
"""Keys that the agent doesn't believe."""


def later(
    rig: Rig,
    log: Log,
    *signers: int,
    generation: int = 2,
    at: tuple[str, ...] = (),
) -> SignedHeads:
    """From now on these controllers show heads of a later generation; keys 1 to 3 are believed."""
    heads = SignedHeads(rig, log, generation)
    heads.signers = [SigningKey(heads.origin, bytes((number,)) * 32) for number in signers]
    heads.urls = at
    return heads


def online_rig(urls: tuple[str, ...] = (ONE,), **settings) -> Rig:
    rig, _ = served_rig(urls=urls, **settings)
    rig.online()
    rig.run(3)
    assert kept(rig) is not None
    return rig


@pytest.mark.parametrize("mode", list(NewGenerations))
@pytest.mark.parametrize("names_keys", [True, False])
@pytest.mark.parametrize("signers", [OTHERS, (1,), (1, *OTHERS)])
def test_with_keys_in_the_settings_no_other_key_begins_a_generation(
    signers: tuple[int, ...],
    names_keys: bool,
    mode: NewGenerations,
) -> None:
    rig = online_rig(head_keys=PINNED, new_generations=mode)
    before = kept(rig)
    later(rig, rig.log, *signers).names_keys = names_keys
    rig.run(10)
    assert kept(rig) == before
    assert rig.agent.state is BrokerState.ONLINE, rig.agent.reason
    assert not rig.agent.heads.contradiction
    assert not evidence(rig)
    assert rig.agent.heads.problem


@pytest.mark.parametrize("signers", [OTHERS, (1,)])
def test_a_compromised_leader_does_not_get_a_forged_log_adopted_by_another_generation(
    signers: tuple[int, ...],
) -> None:
    rig = online_rig(head_keys=PINNED)
    before, offset = kept(rig), rig.agent.image.offset
    rig.active.log = forged_log(rig, 2, 4)
    later(rig, rig.active.log, *signers)
    rig.run(30)
    assert rig.agent.state is BrokerState.FENCED
    assert (rig.agent.image.offset, rig.agent.may_serve(), kept(rig)) == (offset, False, before)
    assert "head_keys" in rig.agent.heads.problem


@pytest.mark.parametrize("mode", list(NewGenerations))
@pytest.mark.parametrize("keys", [(), PINNED], ids=["of the first head", "of the settings"])
def test_a_majority_of_the_believed_keys_begins_a_generation(
    keys: tuple[bytes, ...], mode: NewGenerations
) -> None:
    rig = online_rig(head_keys=keys, new_generations=mode)
    before, recovered = kept(rig), forged_log(rig, 2, 4)
    rig.active.log = recovered
    after = later(rig, recovered, 1, 2, 9)
    rig.run(30)
    assert len(evidence(rig)) == 3
    if mode is NewGenerations.HOLD:
        assert kept(rig) == before
        assert "people decide" in rig.agent.heads.contradiction
        return
    assert rig.agent.state is BrokerState.ONLINE, rig.agent.reason
    assert rig.agent.image.offset == recovered.end
    # The keys that a controller names beside the head are not believed for that.
    after.signers = [SigningKey(after.origin, bytes((number,)) * 32) for number in (9, 8, 1)]
    newest = kept(rig)
    recovered.fill(3)
    rig.run(10)
    assert kept(rig) == newest
    assert "keys signed" in rig.agent.heads.problem


def test_new_keys_in_the_settings_begin_the_generation_that_they_signed() -> None:
    rig = online_rig(head_keys=PINNED)
    restored = forged_log(rig, 2, 4)
    rig.host.kill()
    new = tuple(SigningKey("key", bytes((n,)) * 32).public.public for n in OTHERS)
    rig.boot(head_keys=new)
    rig.active.log = restored
    after = later(rig, restored, *OTHERS)
    rig.start()
    rig.run(30)
    newest = kept(rig)
    assert newest is not None
    assert newest.origin == after.origin
    assert rig.agent.state is BrokerState.ONLINE, rig.agent.reason


@pytest.mark.parametrize("mode", list(NewGenerations))
@pytest.mark.parametrize("liar", ALL)
def test_one_lying_controller_moves_no_agent_that_pinned_the_first_keys(
    liar: str, mode: NewGenerations
) -> None:
    rig = online_rig(ALL, new_generations=mode)
    before = kept(rig)
    later(rig, rig.log, *OTHERS, at=(liar,))
    for _ in range(3):
        rig.do(rig.agent.heads.hold)
        rig.run(10)
    assert kept(rig) == before
    assert not rig.agent.heads.contradiction
    assert not evidence(rig)


def test_a_lying_leader_is_not_followed_while_another_controller_shows_the_known_generation() -> (
    None
):
    rig = online_rig(ALL)
    before, offset = kept(rig), rig.agent.image.offset
    forged = forged_log(rig, 2, 4)
    rig.active.log = forged
    later(rig, forged, *OTHERS, at=(ONE, TWO))
    rig.run(30)
    assert rig.agent.state is BrokerState.FENCED
    assert (rig.agent.image.offset, kept(rig)) == (offset, before)
    assert f"{THREE} still shows a head" in rig.agent.heads.problem


def test_two_claims_under_different_keys_are_not_followed() -> None:
    rig = online_rig(ALL)
    before, forged = kept(rig), forged_log(rig, 2, 4)
    rig.active.log = forged
    later(rig, forged, *OTHERS)
    later(rig, rig.log, 4, 5, 6, generation=3, at=(TWO,))
    rig.run(30)
    assert rig.agent.state is BrokerState.FENCED
    assert kept(rig) == before
    assert "other keys signed" in rig.agent.heads.problem


def test_the_only_controller_that_is_left_is_followed() -> None:
    """A recovery may leave one folder of three, and a restore none: nobody is there to object."""
    rig = online_rig(ALL)
    recovered = forged_log(rig, 2, 4)
    rig.active.log = recovered
    later(rig, recovered, 1, at=(ONE,))
    gone = SignedHeads(rig, recovered)
    gone.urls, gone.answers = (TWO, THREE), False
    rig.run(30)
    assert rig.agent.state is BrokerState.ONLINE, rig.agent.reason
    assert rig.agent.image.offset == recovered.end
