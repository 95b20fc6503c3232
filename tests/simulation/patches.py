"""A build with something switched off, as long as a context lasts: what mutants are made of."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Patch = tuple[object, str, Any]
"""Where, which attribute, and what stands there instead."""


@contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    before = [getattr(where, attribute) for where, attribute, _ in patches]
    for where, attribute, instead in patches:
        setattr(where, attribute, instead)
    try:
        yield
    finally:
        for (where, attribute, _), method in zip(patches, before, strict=True):
            setattr(where, attribute, method)
