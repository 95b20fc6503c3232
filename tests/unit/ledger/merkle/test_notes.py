"""Signed notes, keys and heads: what is read, what is refused, and who must have signed."""

from random import Random

import pytest

from ledger.merkle.heads import HeadError, TreeHead, believed_head, origin_of
from ledger.merkle.notes import COSIGNATURE, NoteError, NoteKey, SignedNote, SigningKey
from tests.oracles.transparency.drawn_trees import spoiled

ORIGIN = origin_of("a-cluster")
KEYS = [SigningKey(ORIGIN, bytes((number,)) * 32) for number in range(3)]
PUBLIC = [key.public for key in KEYS]
HEAD = TreeHead(ORIGIN, 7, bytes(range(32)))


def signed(*keys: SigningKey, text: str = HEAD.text) -> SignedNote:
    return SignedNote(text, tuple(key.sign(text) for key in keys))


def test_a_note_is_read_as_it_was_written() -> None:
    note = signed(*KEYS)
    assert SignedNote.parse(note.encode().encode()) == note
    assert note.signers(PUBLIC) == tuple(PUBLIC)
    assert TreeHead.parse(note.text) == HEAD


def test_the_key_of_gos_documentation() -> None:
    text = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    key = NoteKey.parse(text)
    assert key.text == text
    note = (
        "If you think cryptography is the answer to your problem,\n"
        "then you don't know what your problem is.\n"
        "\n"
        "\N{EM DASH} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNX"
        "gKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
    )
    assert SignedNote.parse(note.encode()).signers([key]) == (key,)


def test_a_majority_is_believed() -> None:
    assert believed_head(signed(*KEYS[:2]), ORIGIN, PUBLIC) == HEAD
    with pytest.raises(HeadError, match="1 of 3 keys signed"):
        believed_head(signed(KEYS[0]), ORIGIN, PUBLIC)
    with pytest.raises(HeadError, match="1 of 3 keys signed"):
        believed_head(signed(KEYS[0], KEYS[0]), ORIGIN, PUBLIC)
    with pytest.raises(HeadError, match="not of"):
        believed_head(signed(*KEYS), origin_of("another"), PUBLIC)


def test_a_stranger_counts_for_nobody_and_a_wrong_signature_spoils_all() -> None:
    stranger = SigningKey(ORIGIN, bytes(31) + b"\x09")
    with pytest.raises(HeadError, match="1 of 3"):
        believed_head(signed(KEYS[0], stranger), ORIGIN, PUBLIC)
    other = KEYS[1].sign("another text\n")
    note = SignedNote(HEAD.text, (*signed(KEYS[0], KEYS[2]).signatures, other))
    with pytest.raises(NoteError, match="is wrong"):
        believed_head(note, ORIGIN, PUBLIC)


def test_a_cosignature_holds_with_its_time_only() -> None:
    witness = SigningKey("witness.example/1", bytes(32), COSIGNATURE)
    signature = witness.sign(HEAD.text, 1_700_000_000)
    note = SignedNote(HEAD.text, (signature,))
    assert note.signers([witness.public]) == (witness.public,)
    later = b"\x00" * 7 + b"\x01" + signature.signature[8:]
    assert not witness.public.verifies(HEAD.text, later)
    assert not witness.public.verifies(HEAD.text, signature.signature[:-1])
    assert NoteKey.parse(witness.public.text) == witness.public


def test_each_flipped_bit_of_a_note_is_found() -> None:
    random = Random(11)
    whole = signed(*KEYS).encode().encode()
    for _ in range(1000):
        bad = spoiled(random, {"kind": "head", "note": whole})["note"]
        try:
            note = SignedNote.parse(bad)
            assert len(note.signers(PUBLIC)) < len(PUBLIC)
        except NoteError:
            continue


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text\n",
        b"text\n\n",
        b"\n\n",
        b"text\n\n- name AAAAAAAA\n",
        signed(KEYS[0]).encode().encode()[:-1],
        signed(KEYS[0]).encode().encode() + b"more\n",
        b"te\xffxt\n\n",
        signed(KEYS[0], text="a\ttab\n").encode().encode(),
        signed(*KEYS * 34).encode().encode(),
        b"a" * 1_000_001,
    ],
)
def test_what_is_no_note(data: bytes) -> None:
    with pytest.raises(NoteError):
        SignedNote.parse(data)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name",
        "name+00000000+AAAA",
        PUBLIC[0].text.replace("+", " ", 1),
        PUBLIC[0].text[:-1],
        PUBLIC[0].text.replace(PUBLIC[0].id.hex(), "00000000"),
        "a name" + PUBLIC[0].text,
    ],
)
def test_what_is_no_key(text: str) -> None:
    with pytest.raises(NoteError):
        NoteKey.parse(text)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "a\u2003b"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(NoteError):
        SigningKey(name, bytes(32))


def test_a_private_key_has_32_bytes() -> None:
    with pytest.raises(NoteError, match="32 bytes"):
        SigningKey("name", bytes(31))


ROOT = HEAD.text.split("\n")[2]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "origin\n7\n",
        f"\n7\n{ROOT}\n",
        f"origin\n07\n{ROOT}\n",
        f"origin\n-7\n{ROOT}\n",
        f"origin\n{2**63}\n{ROOT}\n",
        f"origin\n\u0667\n{ROOT}\n",
        f"origin\n7\n{ROOT}",
        f"origin\n7\n{ROOT[:-1]}\n",
        f"origin\n7\n{ROOT[4:]}\n",
        f"origin\n7\n{ROOT}\n\n",
        f"origin\n7\n {ROOT}\n",
    ],
)
def test_what_is_no_head(text: str) -> None:
    with pytest.raises(HeadError):
        TreeHead.parse(text)


def test_a_head_may_have_further_lines() -> None:
    head = TreeHead.parse(HEAD.text + "more\n")
    assert head.extensions == ("more",)
    assert head.text == HEAD.text + "more\n"


@pytest.mark.parametrize("cluster", ["a b", "a+b", "a/b", "a\nb", "ä", "a%b"])
def test_any_cluster_has_an_origin_that_can_name_a_key(cluster: str) -> None:
    origin = origin_of(cluster)
    assert SigningKey(origin, bytes(32)).public.name == origin
    assert origin.startswith("logberg/a") or cluster == "ä"
    assert origin.count("/") == 1


def test_a_restored_cluster_has_another_origin() -> None:
    assert origin_of("c", 1) == origin_of("c") == "logberg/c"
    assert origin_of("c", 2) == "logberg/c/2"
