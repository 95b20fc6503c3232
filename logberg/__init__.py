"""A metadata quorum in the style of KIP-500: the names that programs import.

    from logberg import AgentConfig, BrokerAgent, LogbergClient

Rule: programs import from here, and from `logberg.spark`; all other modules may move. The names are
those of `logberg.public`. They are loaded together when the first of them is asked for, so
`import logberg` costs nothing. `__init__.pyi` shows them to type checkers.
`docs/reference-python.md` explains them.
"""

import importlib


def __getattr__(name: str) -> object:
    if name == "__all__" or not name.startswith("_"):
        public = importlib.import_module(f"{__name__}.public")
        if name == "__all__" or name in public.__all__:
            globals().update({each: getattr(public, each) for each in ("__all__", *public.__all__)})
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
