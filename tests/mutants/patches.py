"""Switches off a protection of the product inside a context; mutants are made of such patches.

Rule: the product has no hook for it. A patch names its target by its path (`package.module.Class.
attribute`). If the target is gone, or its text has changed, the patch raises an error that names
it. Otherwise a mutant that breaks nothing would seem to survive.
"""

import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any, NamedTuple

import pytest

Build = Callable[[Any], Any]
"""From what stands there to what stands there instead."""


class MovedError(Exception):
    """The product has changed under a patch; the message says which one."""


class Patch(NamedTuple):
    """A target in the product, and the function that makes its replacement."""

    target: str
    build: Build

    def place(self) -> tuple[Any, str, Any]:
        """Return the object that holds the target, the attribute, and its present value."""
        owner, _, attribute = self.target.rpartition(".")
        where = _found(owner)
        if attribute not in vars(where):
            raise MovedError(f"{self.target} is not there any more")
        return where, attribute, vars(where)[attribute]


def _found(path: str) -> Any:
    """Return a module, or a class in one."""
    try:
        return import_module(path)
    except ModuleNotFoundError:
        owner, _, name = path.rpartition(".")
        if not owner:
            raise MovedError(f"there is no module {path}") from None
        where = _found(owner)
        if name not in vars(where):
            raise MovedError(f"{path} is not there any more") from None
        return vars(where)[name]


def gives(value: object) -> Build:
    """Whatever is asked, this is the answer; of a property too."""

    def build(original: Any) -> Any:
        def answer(*_args: object, **_named: object) -> object:
            return value

        return property(answer) if isinstance(original, property) else answer

    return build


def instead(function: Callable[..., Any]) -> Build:
    """Another function."""
    return lambda _original: function


def around(function: Callable[..., Any]) -> Build:
    """Another function, which gets the one that stood there as its first argument."""

    def build(original: Any) -> Any:
        @wraps(original)
        def answer(*args: Any, **named: Any) -> Any:
            return function(original, *args, **named)

        return answer

    return build


def edited(*changes: tuple[str, str]) -> Build:
    """The same function with some of its text changed; each piece must stand in it once."""

    def build(original: Any) -> Any:
        function = original.fget if isinstance(original, property) else original
        function = inspect.unwrap(getattr(function, "__func__", function))
        text = textwrap.dedent(inspect.getsource(function))
        for old, new in changes:
            if text.count(old) != 1:
                raise MovedError(f"{function.__qualname__} has {old!r} {text.count(old)} times")
            text = text.replace(old, new)
        made: dict[str, Any] = {}
        # Its globals are the module's own, so that it is broken in one place and no other.
        exec(compile(text, inspect.getfile(function), "exec"), function.__globals__, made)
        return made[function.__name__]

    return build


@contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    """Break the build. Raises MovedError, and then nothing is broken."""
    with pytest.MonkeyPatch.context() as build:
        for patch in patches:
            where, attribute, original = patch.place()
            build.setattr(where, attribute, patch.build(original))
        yield
