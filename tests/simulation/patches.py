"""Replaces a part of the product inside a context."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

Patch = tuple[object, str, Any]
"""Where, which attribute, and what stands there instead."""


@contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as build:
        for where, attribute, instead in patches:
            build.setattr(where, attribute, instead)
        yield
