"""Keys of subjects: any can be destroyed, the others stay, and what is left makes none again."""

import hmac
import random

import pytest

from metadata.sealed_blocks import SealingError, key_id_of, number_of_block
from metadata.sealing import ClusterKey, salted_hash
from metadata.subject_keys import SubjectKeys, SubjectKeysError

ROOT = bytes(range(32))
CLUSTER = bytes(32)


def numbers(count, seed=1):
    dice = random.Random(seed)
    return [dice.randbytes(8) for _ in range(count)]


def by_hand(number):
    """Return the key of a number from the root, step by step."""
    secret = ROOT
    for bit in range(64):
        side = int.from_bytes(number, "big") >> (63 - bit) & 1
        secret = hmac.digest(secret, (b"logberg left", b"logberg right")[side], "sha256")
    return secret


def test_a_key_follows_from_the_root():
    keys = SubjectKeys.of_root(ROOT)
    for number in (*numbers(20), bytes(8), b"\xff" * 8):
        assert keys.key_of(number) == by_hand(number)


def test_destroyed_keys_are_gone_and_all_others_stay():
    keys = SubjectKeys.of_root(ROOT)
    some = [*numbers(40), bytes(8), bytes(7) + b"\x01", b"\xff" * 8]
    gone, kept = some[::2], some[1::2]

    left = keys.without(gone)

    assert [left.key_of(number) for number in gone] == [None] * len(gone)
    assert [left.key_of(number) for number in kept] == [by_hand(number) for number in kept]
    assert left.id == keys.id
    assert keys.key_of(gone[0]) is not None, "what was given is unchanged"


def test_no_secret_that_is_left_makes_a_destroyed_key():
    number = numbers(1)[0]
    left = SubjectKeys.of_root(ROOT).without([number])
    secrets = set(left._secrets.values())
    path = [ROOT]
    for bit in range(64):
        side = int.from_bytes(number, "big") >> (63 - bit) & 1
        path.append(hmac.digest(path[-1], (b"logberg left", b"logberg right")[side], "sha256"))
    assert not secrets & set(path)
    assert len(secrets) == 64


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_erasures_does_not_matter(seed):
    some = numbers(12, seed)
    one = SubjectKeys.of_root(ROOT)
    for number in some:
        one = one.without([number])
    shuffled = random.Random(seed).sample(some, len(some))
    assert one == SubjectKeys.of_root(ROOT).without([*shuffled, some[0]])


def test_trees_survive_their_encoding():
    keys = SubjectKeys.of_root(ROOT).without(numbers(3))
    assert SubjectKeys.decode(keys.encode()) == keys
    assert ROOT not in keys.encode()
    assert ROOT.hex() not in repr(keys)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"LGBK\x01",
        b"LGBK\x02" + bytes(8 + 41),
        b"LGBK\x01" + bytes(8 + 40),
        b"LGBK\x01" + bytes(8 + 41),
        b"LGBK\x01" + bytes(8) + b"\xff" * 41,
    ],
    ids=["nothing", "head", "format", "cut", "place 0", "place too deep"],
)
def test_other_bytes_are_refused(data):
    with pytest.raises(SubjectKeysError):
        SubjectKeys.decode(data)


def test_wrong_lengths_are_refused():
    with pytest.raises(ValueError, match="32 bytes"):
        SubjectKeys.of_root(b"short")
    with pytest.raises(ValueError, match="8 bytes"):
        SubjectKeys.of_root(ROOT).key_of(b"short")


# -- blocks -----------------------------------------------------------------------------------


def sealing():
    key = ClusterKey(CLUSTER)
    key.subjects.keys = SubjectKeys.of_root(ROOT)
    return key


def test_a_block_about_a_subject_needs_both_keys():
    key = sealing()
    number = key.number_of("user:alice")
    sealed = key.seal_for(number, "place", b"secret", bytes(16))

    salt, secret = key.open_with_salt("place", sealed.block)
    assert secret == b"secret"
    assert salted_hash(salt, secret) == sealed.salted_hash
    assert key_id_of(sealed.block) == key.id
    assert number_of_block(sealed.block) == number
    with pytest.raises(SealingError, match="is not here"):
        ClusterKey(CLUSTER).open("place", sealed.block)
    other = ClusterKey(b"\x01" * 32, subjects=key.subjects)
    with pytest.raises(SealingError, match="sealed under cluster key"):
        other.open("place", sealed.block)
    forged = sealed.block[:5] + other.id + sealed.block[13:]
    with pytest.raises(SealingError, match="changed"):
        other.open("place", forged)
    with pytest.raises(SealingError, match="another place"):
        key.open("elsewhere", sealed.block)


def test_what_a_tree_gives_depends_on_the_cluster_key():
    key = sealing()
    other = ClusterKey(b"\x01" * 32, subjects=key.subjects)
    number = key.number_of("user:alice")
    assert key.subject_mac(number, "p", b"") != other.subject_mac(number, "p", b"")
    one, two = (each.seal_for(number, "p", b"secret", bytes(16)) for each in (key, other))
    assert one.salted_hash != two.salted_hash


def test_an_erased_block_is_never_opened_again():
    key = sealing()
    number, other = key.number_of("user:alice"), key.number_of("user:bob")
    alices = key.seal_for(number, "place", b"secret", bytes(16)).block
    bobs = key.seal_for(other, "place", b"bob's", bytes(16)).block

    key.subjects.keys = key.subjects.keys.without([number])

    with pytest.raises(SealingError, match="was destroyed"):
        key.open("place", alices)
    with pytest.raises(SealingError, match="was destroyed"):
        key.seal_for(number, "place", b"secret", bytes(16))
    assert key.open("place", bobs) == b"bob's"


def test_each_byte_of_a_block_counts():
    key = sealing()
    block = key.seal_for(key.number_of("user:alice"), "p", b"secret", bytes(16)).block
    for at in range(len(block)):
        changed = block[:at] + bytes([block[at] ^ 1]) + block[at + 1 :]
        with pytest.raises(SealingError):
            key.open("p", changed)


def test_a_subject_has_another_number_after_its_erasure():
    key = ClusterKey(CLUSTER)
    found = {key.number_of(subject, n) for subject in ("user:a", "user:b") for n in range(3)}
    assert len(found) == 6


def test_digests_of_requests_change_with_each_erasure():
    key = sealing()
    first = key.request_mac(b"a request")
    assert first != ClusterKey(CLUSTER).request_mac(b"a request")
    key.subjects.keys = key.subjects.keys.without([key.requests_number()])
    assert key.request_mac(b"a request") != first


def test_the_key_of_requests_is_searched_once(monkeypatch):
    key, looks = sealing(), []
    gone = [key.number_of("requests", times) for times in range(30)]
    key.subjects.keys = key.subjects.keys.without(gone)
    key_of = SubjectKeys.key_of
    monkeypatch.setattr(
        SubjectKeys, "key_of", lambda keys, number: looks.append(number) or key_of(keys, number)
    )
    assert key.requests_number() == key.number_of("requests", 30)
    looks.clear()
    assert key.requests_number() == key.number_of("requests", 30)
    assert len(looks) == 1
    key.subjects.keys = SubjectKeys.of_root(bytes(32))
    assert key.requests_number() == key.number_of("requests"), "another tree has all keys"


def test_without_keys_there_is_no_number_of_requests():
    with pytest.raises(SealingError, match="not here"):
        ClusterKey(CLUSTER).requests_number()


def test_salts_follow_from_the_subjects_key_too():
    """Who has the cluster key and the random numbers can't make a salt without the other key."""
    one, other = sealing(), ClusterKey(CLUSTER)
    other.subjects.keys = SubjectKeys.of_root(bytes(32))
    number = one.number_of("user:alice")
    hashes = {key.seal_for(number, "p", b"guess", bytes(16)).salted_hash for key in (one, other)}
    assert len(hashes) == 2
