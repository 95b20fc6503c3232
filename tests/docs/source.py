"""What the source says of itself, for the docs: settings, metrics, events, routes, errors.

Rule: read from the code that runs, or from its text by `ast`; nothing is listed by hand here.
"""

import ast
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "logberg",
    "audit",
    "controller",
    "broker_agent",
    "coordination",
    "kafka_listener",
    "snapshots",
    "ledger",
    "metadata",
    "quorum",
    "runtime",
)
LEVELS = ("debug", "info", "warning", "error", "critical", "exception")
_METRICS = {
    "counter": "counter",
    "read_counter": "counter",
    "gauge": "gauge",
    "read_gauge": "gauge",
    "histogram": "histogram",
    "read_histogram": "histogram",
}


class Setting(NamedTuple):
    """A key of a configuration file."""

    key: str
    kind: str
    default: str
    meaning: str


class Metric(NamedTuple):
    """A figure that a process shows."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    package: str


class Event(NamedTuple):
    """A name in a structured log."""

    name: str
    levels: tuple[str, ...]
    packages: tuple[str, ...]
    fields: tuple[str, ...]


@cache
def modules() -> tuple[tuple[str, ast.Module], ...]:
    """Every module that ships, with its package; simulated parts don't."""
    return tuple(
        (package, ast.parse(path.read_text(), str(path)))
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if "simulated" not in path.parts
    )


# -- settings -----------------------------------------------------------------------------------


def settings(kind: type[msgspec.Struct], prefix: str = "") -> list[Setting]:
    """The keys of a settings class, tables within it behind it."""
    meanings = _attribute_docs(kind)
    found: list[Setting] = []
    inner: list[Setting] = []
    for field in msgspec.structs.fields(kind):
        name = prefix + field.name
        table = _table(field.type)
        if table is not None:
            inner += settings(table, f"{name}.")
        found.append(
            Setting(
                name,
                _kind(field.type),
                _default(field, meanings.get(field.name, "")),
                meanings.get(field.name, ""),
            )
        )
    return found + inner


def _attribute_docs(kind: type) -> dict[str, str]:
    """The strings behind attributes, which Python itself forgets."""
    file = ROOT / (kind.__module__.replace(".", "/") + ".py")
    body = next(
        node.body
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    docs = {}
    for before, after in pairwise(body):
        if (
            isinstance(before, ast.AnnAssign)
            and isinstance(before.target, ast.Name)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            docs[before.target.id] = " ".join(str(after.value.value).split())
    return docs


def _table(annotation: Any) -> type[msgspec.Struct] | None:
    """The settings class within an annotation such as `Tls | None` or `tuple[Token, ...]`."""
    for part in (annotation, *getattr(annotation, "__args__", ())):
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            return part
    return None


def _kind(annotation: Any) -> str:
    simple = {str: "text", int: "number", float: "fraction", bool: "true or false"}
    if annotation in simple:
        return simple[annotation]
    if getattr(annotation, "__origin__", None) is dict:
        return f"table of {simple[annotation.__args__[1]]}s"
    several = getattr(annotation, "__origin__", None) is tuple
    if _table(annotation) is not None:
        return "tables" if several else "table"
    return "list of texts" if several else "text"


def _default(field: msgspec.structs.FieldInfo, meaning: str) -> str:
    value = field.default
    if value is msgspec.NODEFAULT:
        return "required" if field.required else "none"
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value == ():
        return "none"
    if isinstance(value, int):
        return _with_unit(field.name, value)
    return f"`{value}`"


def _with_unit(name: str, value: int) -> str:
    if name.endswith("_bytes") and value % (1024 * 1024) == 0:
        return f"{value} bytes ({value // (1024 * 1024)} MiB)"
    return f"{value} ms" if name.endswith("_ms") else str(value)


# -- metrics ------------------------------------------------------------------------------------


@cache
def metrics() -> list[Metric]:
    """Every declaration of a metric, by name."""
    found = []
    for package, module in modules():
        for call in _calls(module):
            kind = _METRICS.get(_called(call))
            if kind is None or not call.args or not _is_text(call.args[0]):
                continue
            name = _text(call.args[0])
            if name.startswith(("logberg_", "process_")):
                meaning = _text(call.args[1]).rstrip(".")
                found.append(Metric(name, kind, _labels(call), meaning, package))
    return sorted(found)


def _labels(call: ast.Call) -> tuple[str, ...]:
    candidates = [keyword.value for keyword in call.keywords if keyword.arg == "labels"]
    candidates += call.args[2:]
    for node in candidates:
        if isinstance(node, ast.Tuple) and node.elts and all(_is_text(e) for e in node.elts):
            return tuple(_text(element) for element in node.elts)
    return ()


# -- events -------------------------------------------------------------------------------------


@cache
def events() -> list[Event]:
    """Every event that is logged, by name."""
    levels: dict[str, set[str]] = {}
    packages: dict[str, set[str]] = {}
    fields: dict[str, dict[str, None]] = {}
    for package, module in modules():
        constants = _constants(module)
        for call in _calls(module):
            level = _called(call)
            found = _event_of(call, level, constants)
            if found is None:
                continue
            name, level = found
            levels.setdefault(name, set()).add("error" if level == "exception" else level)
            packages.setdefault(name, set()).add(package)
            named = [k.arg for k in call.keywords if k.arg and k.arg != "exc_info"]
            fields.setdefault(name, {}).update(dict.fromkeys(named))
    return [
        Event(
            name,
            tuple(sorted(levels[name], key=LEVELS.index)),
            tuple(sorted(packages[name])),
            tuple(fields[name]),
        )
        for name in sorted(levels)
    ]


def _event_of(call: ast.Call, level: str, constants: dict[str, str]) -> tuple[str, str] | None:
    """Name and level of the event that a call logs; None if it logs none."""
    if not isinstance(call.func, ast.Attribute) or not _is_log(call.func.value):
        return None
    if level == "log" and len(call.args) > 1:
        return _resolved(call.args[1], constants), "warning"
    if level not in LEVELS:
        return None
    return _resolved(call.args[0], constants), level


def _is_log(node: ast.expr) -> bool:
    """`log`, `self._log`, `inside.log` …, not a module of that name."""
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return name in ("log", "_log")


def _resolved(node: ast.expr, constants: dict[str, str]) -> str:
    if _is_text(node):
        return _text(node)
    if isinstance(node, ast.Name) and node.id in constants:
        return constants[node.id]
    raise AssertionError(f"line {node.lineno}: an event's name must be a constant of its module")


def _constants(module: ast.Module) -> dict[str, str]:
    """A module's own text constants, and those that it imports from modules of ours."""
    found: dict[str, str] = {}
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found |= _imported(node)
        elif isinstance(node, ast.Assign) and _is_text(node.value):
            names = (target.id for target in node.targets if isinstance(target, ast.Name))
            found |= dict.fromkeys(names, _text(node.value))
    return found


def _imported(node: ast.ImportFrom) -> dict[str, str]:
    file = ROOT / (str(node.module).replace(".", "/") + ".py")
    wanted = {name.name: name.asname or name.name for name in node.names if name.name.isupper()}
    if not wanted or not file.is_file():
        return {}
    there = _constants(ast.parse(file.read_text()))
    return {alias: there[name] for name, alias in wanted.items() if name in there}


# -- words ---------------------------------------------------------------------------------------


def texts() -> Iterator[str]:
    """Every text that the source holds; those with values in them in pieces."""
    for _, module in modules():
        for node in ast.walk(module):
            if isinstance(node, ast.expr) and _is_text(node):
                yield _text(node)


# -- ast ----------------------------------------------------------------------------------------


def _calls(module: ast.Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(module) if isinstance(node, ast.Call))


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _text(node: ast.expr) -> str:
    assert isinstance(node, ast.Constant)
    return str(node.value)
