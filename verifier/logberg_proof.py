#!/usr/bin/env python3
"""Check a batch proof of Logberg without Logberg: one file of Python 3.11 or later.

    python3 logberg_proof.py FILE --key KEY [--key KEY ...]

FILE is what `logberg audit prove` wrote. Each KEY is a controller's `head.pub`, as a file or as the
line in it; a majority of them must have signed. The check asks nobody and needs no network.

This was written from docs/format.md (sections 3, 5 and 14), RFC 6962, RFC 8032 and C2SP's
signed-note and tlog-checkpoint, and shares no line with the product. From top to bottom: Ed25519;
the tree; signed notes; MessagePack; the batch; the proof.

Exit code 0: the proof holds; 1: it doesn't, and the output names what fails; 2: it can't be read.
"""

import argparse
import base64
import datetime as dt
import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Any


class RefusedError(Exception):
    """Something of the proof is not right; the message says what."""


class UnreadableError(Exception):
    """The file is no batch proof; the message says why."""


def need(right: bool, what: str) -> None:
    """Raise RefusedError unless all is right."""
    if not right:
        raise RefusedError(what)


# ---- Ed25519 (RFC 8032, section 5.1) ------------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
Point = tuple[int, int, int, int]
ZERO: Point = (0, 1, 1, 0)


def add(one: Point, two: Point) -> Point:
    """Add two points in extended coordinates."""
    a = (one[1] - one[0]) * (two[1] - two[0]) % P
    b = (one[1] + one[0]) * (two[1] + two[0]) % P
    c = 2 * one[3] * two[3] * D % P
    d = 2 * one[2] * two[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number: int, point: Point) -> Point:
    """Multiply a point."""
    found = ZERO
    while number:
        if number & 1:
            found = add(found, point)
        point = add(point, point)
        number >>= 1
    return found


def decode_point(data: bytes) -> Point:
    """Decode a point. Raises RefusedError."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    need(y < P, "key or signature: not a point of the curve")
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    need(
        not (x * x - square) % P and (x != 0 or not sign),
        "key or signature: not a point of the curve",
    )
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = decode_point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(public: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether a signature is right."""
    if len(public) != 32 or len(signature) != 64:
        return False
    try:
        key, commitment = decode_point(public), decode_point(signature[:32])
    except RefusedError:
        return False
    scalar = int.from_bytes(signature[32:], "little")
    if scalar >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    left = times(scalar, BASE)
    right = add(commitment, times(int.from_bytes(digest, "little") % L, key))
    return (
        not (left[0] * right[2] - right[0] * left[2]) % P
        and not (left[1] * right[2] - right[1] * left[2]) % P
    )


# ---- the tree (RFC 6962, section 2.1) -----------------------------------------------------------


def sha256(*parts: bytes) -> bytes:
    """Return the hash of what the parts make together."""
    return hashlib.sha256(b"".join(parts)).digest()


def path_root(leaf: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """Return the root that an audit path leads to (section 2.1.1, read backwards)."""
    if size == 1:
        need(not path, "inclusion: the path is too long")
        return leaf
    need(bool(path), "inclusion: the path is too short")
    half = 1 << (size - 1).bit_length() - 1
    if index < half:
        return sha256(b"\x01", path_root(leaf, index, half, path[:-1]), path[-1])
    return sha256(b"\x01", path[-1], path_root(leaf, index - half, size - half, path[:-1]))


def grown_roots(old: int, size: int, path: list[bytes], known: bytes | None) -> tuple[bytes, bytes]:
    """Return the roots of `old` and of `size` leaves by a consistency proof (section 2.1.2).

    `known`: the older root where the proof leaves it out.
    """
    if old == size:
        if known is not None:
            need(not path, "consistency: the proof is too long")
            return known, known
        need(len(path) == 1, "consistency: the proof has not the right length")
        return path[0], path[0]
    need(bool(path), "consistency: the proof is too short")
    half = 1 << (size - 1).bit_length() - 1
    if old <= half:
        before, left = grown_roots(old, half, path[:-1], known)
        return before, sha256(b"\x01", left, path[-1])
    before, right = grown_roots(old - half, size - half, path[:-1], None)
    return sha256(b"\x01", path[-1], before), sha256(b"\x01", path[-1], right)


# ---- signed notes and heads (C2SP) --------------------------------------------------------------


def unbase64(text: str, what: str) -> bytes:
    """Decode base64. Raises RefusedError."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        raise RefusedError(f"{what}: not base64") from None
    need(base64.b64encode(data).decode() == text, f"{what}: not base64")
    return data


def read_key(text: str) -> tuple[str, bytes]:
    """Return name and public key of a line."""
    name, _, rest = text.strip().partition("+")
    _, _, encoded = rest.partition("+")
    data = unbase64(encoded, "key")
    need(len(data) == 33 and data[0] == 1, "key: it is no Ed25519 key")
    need(rest[:8] == key_id(name, data[1:]).hex(), "key: its id is not right")
    return name, data[1:]


def key_id(name: str, public: bytes) -> bytes:
    """Return the four bytes that stand before each signature of a key."""
    return sha256(name.encode(), b"\n\x01", public)[:4]


def read_head(
    text: str, cluster_id: str, keys: list[tuple[str, bytes]], what: str
) -> tuple[int, bytes, int]:
    """Return size and root of a head that a majority of the keys signed, and how many did."""
    body, _, lines = text.rpartition("\n\n")
    body += "\n"
    said = body.split("\n")
    need(len(said) == 4 and text.endswith("\n"), f"{what}: it is no signed head")
    plain = "".join(
        sign if sign.isascii() and (sign.isalnum() or sign in "-_.~") else f"%{ord(sign):x}"
        for sign in cluster_id
    )
    first, origin = f"logberg/{plain}", said[0]
    need(origin == first or origin.startswith(f"{first}/"), f"{what}: it is of {origin!r}")
    is_number = said[1].isdecimal() and len(said[1]) < 20
    need(is_number and said[1] == str(int(said[1])), f"{what}: no size")
    root = unbase64(said[2], what)
    need(len(root) == 32, f"{what}: no root")
    signed = set()
    known = {key_id(origin, public): public for name, public in keys if name == first}
    need(bool(known), f"{what}: none of the keys is of {first!r}")
    for line in lines[:-1].split("\n"):
        name, _, encoded = line.removeprefix("\N{EM DASH} ").partition(" ")
        data = unbase64(encoded, what)
        need(line.startswith("\N{EM DASH} ") and len(data) > 4, f"{what}: not a signature: {line}")
        if name == origin and data[:4] in known:
            right = is_signed(known[data[:4]], body.encode(), data[4:])
            need(right, f"{what}: the signature of key {data[:4].hex()} is wrong")
            signed.add(data[:4])
    need(
        len(signed) > len(known) // 2,
        f"{what}: {len(signed)} of {len(known)} keys signed it, and {len(known) // 2 + 1} must",
    )
    return int(said[1]), root, len(signed)


# ---- MessagePack, and what a batch says (docs/format.md, section 3) -----------------------------

WIDE = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4}


def unpack(data: bytes, at: int) -> tuple[Any, int]:
    """Decode one value; return it and where the next one begins. Raises RefusedError."""
    need(at < len(data), "batch: it ends within a value")
    code = data[at]
    at += 1
    if code < 0x80 or code >= 0xE0:
        return (code if code < 0x80 else code - 0x100), at
    if code in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[code], at
    if 0xCA <= code <= 0xD3:
        sign = {0xCA: "f", 0xCB: "d", 0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q"}.get(code)
        text = ">" + (sign or "bhiq"[code - 0xD0])
        size = struct.calcsize(text)
        need(at + size <= len(data), "batch: it ends within a number")
        return struct.unpack_from(text, data, at)[0], at + size
    if code in WIDE:
        length = int.from_bytes(data[at : at + WIDE[code]], "big")
        at += WIDE[code]
    else:
        need(0x90 <= code < 0xC0, f"batch: no value begins with {code:02x}")
        length = code & (0x0F if code < 0xA0 else 0x1F)
    if 0x90 <= code < 0xA0 or code in (0xDC, 0xDD):
        need(length <= len(data), "batch: an array is too long")
        values = []
        for _ in range(length):
            value, at = unpack(data, at)
            values.append(value)
        return values, at
    need(at + length <= len(data), "batch: it ends within a text")
    found = data[at : at + length]
    return (found if code in (0xC4, 0xC5, 0xC6) else found.decode()), at + length


SAID = ("principal", "authenticated by", "on behalf of", "client address", "client id")


def said_by(batch: bytes) -> list[str]:
    """Return who caused a batch, how and why, and its records, in lines. Raises RefusedError."""
    first, last = struct.unpack_from(">II", batch, 72)
    need(80 + first + last + 4 <= len(batch), "batch: its parts are longer than it is")
    who, end = unpack(batch[80 : 80 + first], 0)
    need(end == first and len(who) == 9, "batch: it does not say who caused it")
    lines = [f"{name}: {text!r}" for name, text in zip(SAID, who[:5], strict=True) if text]
    if who[5]:
        number = base64.urlsafe_b64encode(who[5]).decode().rstrip("=")
        lines.append(f"request id: {number}")
    lines += [f"{name}: {text!r}" for name, text in (("operation", who[7]), ("reason", who[8]))]
    records, _ = unpack(batch[80 + first : len(batch) - 4 - last], 0)
    for record in records[:20] if isinstance(records, list) else ():
        lines.append(f"record: {record!r}")
    return lines


# ---- the proof (docs/format.md, section 14) -----------------------------------------------------


FIELDS: dict[str, type] = {"format": int, "clusterId": str, "offset": int, "leafIndex": int}
FIELDS |= {"batch": str, "inclusion": list, "head": str}
OF_OLDER: dict[str, Any] = {"olderHead": "", "olderSize": 0, "consistency": []}


def read_proof(data: bytes) -> dict[str, Any]:
    """Return the fields of a file, each of its right type. Raises UnreadableError."""
    try:
        said = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from None
    if type(said) is not dict:
        raise UnreadableError("it is no object of JSON")
    proof: dict[str, Any] = OF_OLDER | said
    # `type`, since True and 1.0 equal 1, and a number between two leaves is the place of neither.
    for name, kind in (FIELDS | {name: type(value) for name, value in OF_OLDER.items()}).items():
        is_right = type(proof.get(name)) is kind
        if not is_right or (kind is list and {type(one) for one in proof[name]} - {str}):
            raise UnreadableError(f"the field {name} is missing, or of another type")
    return proof


def check(proof: dict[str, Any], keys: list[tuple[str, bytes]]) -> list[str]:
    """Check a proof; return what it shows, in sentences. Raises RefusedError."""
    need(proof["format"] == 1, f"file: its format is {proof['format']}")
    batch = unbase64(proof["batch"], "batch")
    need(len(batch) >= 84 and batch[:8] == b"QRTB\x00\x01\x00\x00", "batch: it is no batch")
    length, count, base, _, time_ms = struct.unpack_from(">IIqqq", batch, 8)
    need(length == len(batch), "batch: its length is not right")
    offset = proof["offset"]
    need(base <= offset < base + count, f"batch: it does not hold offset {offset}")
    size, root, signed = read_head(proof["head"], proof["clusterId"], keys, "head")
    index = proof["leafIndex"]
    need(0 <= index < size, f"inclusion: a tree of {size} leaves has no leaf {index}")
    path = [unbase64(text, "inclusion") for text in proof["inclusion"]]
    need(all(len(one) == 32 for one in path), "inclusion: a hash has 32 bytes")
    # The hash of a batch is that of all but its CRC; it is the data of the leaf.
    found = path_root(sha256(b"\x00", sha256(batch[:-4])), index, size, path)
    need(found == root, f"inclusion: the path leads to {found.hex()}, the head has {root.hex()}")
    when = dt.datetime.fromtimestamp(time_ms / 1000, dt.UTC)
    shown = [
        f"offset {offset} is in the log of {proof['clusterId']}, batch {index}",
        f"time: {when.isoformat(timespec='milliseconds')}",
        *_said_by(batch),
        f"under a head of {size} batches that {signed} keys signed",
    ]
    if proof.get("olderHead"):
        shown.append(_check_older(proof, keys, size, root))
    return shown


def _said_by(batch: bytes) -> list[str]:
    try:
        return said_by(batch)
    except (ValueError, TypeError, RecursionError, struct.error) as error:
        raise RefusedError(f"batch: it can't be read: {type(error).__name__}") from None


def _check_older(
    proof: dict[str, Any], keys: list[tuple[str, bytes]], size: int, root: bytes
) -> str:
    old, old_root, _ = read_head(proof["olderHead"], proof["clusterId"], keys, "older head")
    need(0 < old <= size, f"consistency: {old} batches are no beginning of {size}")
    need(old == proof.get("olderSize"), f"consistency: the older head has {old} batches")
    path = [unbase64(text, "consistency") for text in proof["consistency"]]
    need(all(len(one) == 32 for one in path), "consistency: a hash has 32 bytes")
    before, now = grown_roots(old, size, path, old_root)
    need(before == old_root, "consistency: history before the older head was changed")
    need(now == root, "consistency: the proof does not lead to the head")
    return f"the first {old} batches are those of the older head"


def main(arguments: list[str] | None = None) -> int:
    """Run the command. Returns its exit code."""
    parser = argparse.ArgumentParser(description="Check a batch proof of Logberg.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--key", action="append", required=True, metavar="KEY")
    options = parser.parse_args(arguments)
    try:
        proof = read_proof(options.file.read_bytes())
        keys = [read_key(text if "+" in text else Path(text).read_text()) for text in options.key]
        shown = check(proof, keys)
    except RefusedError as error:
        sys.stdout.write(f"REFUSED: {error}\n")
        return 1
    except UnreadableError as error:
        sys.stdout.write(f"it can't be read: {error}\n")
        return 2
    except (OSError, ValueError) as error:
        sys.stdout.write(f"it can't be read: {type(error).__name__}: {error}\n")
        return 2
    sys.stdout.write("RIGHT: " + "\n".join(shown) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
