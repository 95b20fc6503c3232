"""Targets: what controllers send each other over their links, and the journal's files."""

from controller.replica.contacts import (
    Bulk,
    Confirmation,
    ForwardedContact,
    decode_bulk,
    decode_confirmation,
    encode_message,
)
from controller.replica.digests import DigestComparison, StateMark, StateMarks
from controller.signing.messages import HeadSigned, read_told
from quorum.api import Voter
from quorum.journal.damage import DamagedError
from quorum.journal.frames import JournalFrameReader, encode_header, find_frames
from quorum.journal.manifest import JournalManifest, decode_manifest, encode_manifest
from quorum.membership.formation import decode_formation, encode_formation, generation_of
from quorum.membership.greeting import WIRE_FORMAT, Greeting, decode_greeting
from quorum.membership.voters_entry import decode_voters, encode_voters, voters_of
from quorum.wire.codec import BadBytesError, dumps
from quorum.wire.commands import encode_command, encode_voters_command, payloads_in
from quorum.wire.formats import NEWEST_FORMAT, OLDEST_FORMAT
from quorum.wire.frames import decode, encode, is_of_a_newer_kind
from runtime.links.frames import (
    BadFrameError,
    Hello,
    LinkFrameReader,
    Note,
    framed,
    framed_hello,
    framed_note,
    framed_refusal,
    parse_hello,
    parse_note,
)
from tests.fuzz import repairs
from tests.fuzz.target import FuzzTarget
from tests.unit.quorum.wire.test_frames import FRAMES

_DIRECTORY = b"a directory id!!"
_VOTERS = (Voter(1, _DIRECTORY, "127.0.0.1", 9091), Voter(2, bytes(16), "::1", 9092))
_CLUSTER = "a-cluster"
_SEED = 7
_CAP = 1024 * 1024


def _read_stream(data: bytes) -> None:
    """In one piece and byte by byte: both must find the same."""
    whole, why = _payloads([data])
    pieces, why_in_pieces = _payloads([data[at : at + 1] for at in range(len(data))])
    assert (whole, str(why)) == (pieces, str(why_in_pieces))
    for payload in whole:
        try:
            note, body = parse_note(payload)
            if note is Note.HELLO:
                parse_hello(body)
        except BadFrameError:
            pass
    if why is not None:
        raise why


def _payloads(chunks: list[bytes]) -> tuple[list[bytes], BadFrameError | None]:
    reader, found = LinkFrameReader(_CAP), []
    try:
        for chunk in chunks:
            found += reader.feed(chunk)
    except BadFrameError as error:
        return found, error
    return found, None


def _stream_seeds() -> list[bytes]:
    notes = framed_note(Note.READY) + framed_note(Note.OPEN) + framed(b"x" * 40) + framed(b"")
    hello = framed_hello(Hello(bytes(8), b"a link !", bytes(64), b"a greeting"))
    return [hello, notes, framed_refusal("no")]


def _read_frame(data: bytes) -> None:
    is_of_a_newer_kind(data)
    tolerant = decode(data, NEWEST_FORMAT)
    try:
        strict = decode(data, OLDEST_FORMAT)
    except BadBytesError:
        return
    assert strict == tolerant


def _frame_seeds() -> list[bytes]:
    return [encode(kind, 3, _DIRECTORY, *fields) for kind, fields in FRAMES]


def _read_entry(data: bytes) -> None:
    """What a leader's entries and greetings hold."""
    refused = 0
    for read in (
        decode_greeting,
        payloads_in,
        voters_of,
        decode_voters,
        lambda d: decode_formation(d, _CLUSTER),
    ):
        try:
            read(data)
        except BadBytesError:
            refused += 1
    generation_of(data)
    if refused == 5:
        raise BadBytesError("none of them")


def _entry_seeds() -> list[bytes]:
    voters = encode_voters(_VOTERS)
    return [
        dumps(Greeting(WIRE_FORMAT, _CLUSTER, 1, _DIRECTORY, True, b"")),
        encode_command([b"one", b"two"]),
        encode_voters_command(voters, [b"one"]),
        voters,
        encode_formation(_CLUSTER, {1: _DIRECTORY, 2: bytes(16)}),
    ]


def _read_told(data: bytes) -> None:
    """The small messages on heartbeats. They raise nothing: what can't be read is passed over."""
    for bulk in (decode_bulk(data),):
        assert bulk is None or decode_bulk(encode_message(bulk)) == bulk
    confirmation = decode_confirmation(data)
    assert confirmation is None or decode_confirmation(encode_message(confirmation)) is not None
    head = read_told(data)
    assert head is None or head.encode() == data
    comparison = DigestComparison(1, _marks())
    comparison.on_digest(2, data)
    comparison.verdict((1, 2, 3))


def _marks() -> StateMarks:
    marks = StateMarks()
    marks.restart(0)
    for offset in (1, 1024, 2048, 2050):
        marks.note(StateMark(offset, bytes(32), offset, offset))
    return marks


def _told_seeds() -> list[bytes]:
    contacts = (ForwardedContact(7, 5, 100, "0.2.0"), ForwardedContact(8, 6, 99, None))
    return [
        encode_message(Bulk(b"a life !", 4, 1, contacts)),
        encode_message(Confirmation(b"a life !", 4, 1, 9_000, b"\x00\x01")),
        HeadSigned(True, 9, bytes(32), bytes(32), bytes(64)).encode(),
        _marks().encode(),
    ]


def _read_journal(data: bytes) -> None:
    reader = JournalFrameReader(data, 0, 0, _SEED)
    found = list(reader)
    assert sum(36 + len(frame.body) for frame in found) == reader.offset
    assert list(find_frames(data, 0, _SEED))[: len(found)] or not found
    if reader.problem:
        raise DamagedError(reader.problem)


def _journal_seeds() -> list[bytes]:
    out = b""
    for kind, body in ((1, b"opening"), (3, b"an entry"), (5, b"a vote")):
        out += encode_header(kind, len(out), 0, body, _SEED) + body
    return [out]


def _read_manifest(data: bytes) -> None:
    found = decode_manifest(data)
    assert decode_manifest(encode_manifest(found)) == found


def _manifest_seeds() -> list[bytes]:
    first, second = (b"c", 4, 2), (b"d", 5, 2)
    return [encode_manifest(JournalManifest(_CLUSTER, first, second, b"a mark", _VOTERS))]


TARGETS = (
    FuzzTarget(
        "link-stream",
        "the bytes of a link between controllers, from whoever reaches the quorum's port",
        _read_stream,
        (BadFrameError,),
        _stream_seeds,
        repairs.link_frames,
    ),
    FuzzTarget(
        "link-frames",
        "the frames of a link, from another controller",
        _read_frame,
        (BadBytesError,),
        _frame_seeds,
    ),
    FuzzTarget(
        "link-entries",
        "greetings, entries, sets of voters and formations, from another controller",
        _read_entry,
        (BadBytesError,),
        _entry_seeds,
    ),
    FuzzTarget(
        "link-messages",
        "contacts, signed heads and digests on heartbeats, from another controller",
        _read_told,
        (),
        _told_seeds,
    ),
    FuzzTarget(
        "journal",
        "a journal's segments, from a folder that `quorum recover` reads",
        _read_journal,
        (DamagedError,),
        _journal_seeds,
    ),
    FuzzTarget(
        "manifest",
        "the manifest of a journal, from a folder or from the leader",
        _read_manifest,
        (DamagedError,),
        _manifest_seeds,
        repairs.manifest,
    ),
)
