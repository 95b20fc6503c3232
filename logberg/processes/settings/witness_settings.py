"""Settings of a controller's witnesses (`logberg.processes.witnesses` opens them)."""

from typing import Final

import msgspec

_S3: Final = "s3://"


class WitnessServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[witnesses.servers]]`: a witness that cosigns over HTTP."""

    url: str
    """Its URL, without /add-checkpoint."""
    key: str
    """Its public key: the line in the `witness.pub` that it writes, or that its operator gives."""
    ca: str | None = None
    """The CA that signed its certificate; default: those that this machine trusts."""


class WitnessPlaceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[witnesses.places]]`: a place to which heads are written once."""

    to: str
    """A folder on another disk, or s3://BUCKET/PATH. Each cluster has its own."""
    every_ms: int = 30_000
    """The least time between two heads that are written there."""
    lock_days: int = 0
    """S3 keeps each object for so many days whoever asks (object lock, mode COMPLIANCE); 0: only
    replacing is refused."""


class WitnessesSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[witnesses]` in a controller's file: who outside the cluster keeps its signed heads."""

    needed: int = 1
    """A head is witnessed when so many of the witnesses have it."""
    window_ms: int = 60_000
    """The longest time that a change may be under no witnessed head. The controller says so if it
    is exceeded; it stops nothing."""
    servers: tuple[WitnessServerSettings, ...] = ()
    """Witnesses that cosign."""
    places: tuple[WitnessPlaceSettings, ...] = ()
    """Places that keep heads, and the hashes of all batches."""


def witness_problems(witnesses: WitnessesSettings | None, signed_head_ms: int) -> list[str]:
    """Say what is wrong with the settings, a sentence each."""
    if witnesses is None:
        return []
    found = []
    count = len(witnesses.servers) + len(witnesses.places)
    if not count:
        found.append("witnesses names nobody; write [[witnesses.servers]] or [[witnesses.places]].")
    elif not 1 <= witnesses.needed <= count:
        found.append(f"witnesses.needed is {witnesses.needed}; there are {count} witnesses.")
    if not signed_head_ms:
        found.append("witnesses need signed heads: write a signed_head_ms above 0.")
    if witnesses.window_ms < signed_head_ms:
        found.append(
            f"witnesses.window_ms is {witnesses.window_ms}; it must be signed_head_ms "
            f"({signed_head_ms}) or more."
        )
    for server in witnesses.servers:
        if not server.url.startswith(("http://", "https://")):
            found.append(f"witnesses.servers.url is {server.url!r}; use a URL.")
        found += _key_problems(server.key)
    for place in witnesses.places:
        if not place.to or ("://" in place.to and not place.to.startswith(_S3)):
            found.append("witnesses.places.to names no place; use a folder or s3://BUCKET/PATH.")
        if place.every_ms < 0 or place.lock_days < 0:
            found.append("witnesses.places: every_ms and lock_days must be 0 or more.")
        if place.lock_days and not place.to.startswith(_S3):
            found.append("witnesses.places.lock_days is for s3:// only; leave it out for a folder.")
    names = [server.key.partition("+")[0] for server in witnesses.servers]
    names += [place.to for place in witnesses.places]
    if len(set(names)) < len(names):
        found.append("witnesses names one twice; each has a name of its own.")
    return found


def _key_problems(text: str) -> list[str]:
    # Whoever only reads settings starts faster without this.
    from ledger.merkle.notes import COSIGNATURE, NoteError, NoteKey  # noqa: PLC0415

    try:
        kind = NoteKey.parse(text).kind
    except NoteError as error:
        return [f"witnesses.servers.key: {error}."]
    if kind != COSIGNATURE:
        return ["witnesses.servers.key is a key of a log; write the witness's, of kind 4."]
    return []
