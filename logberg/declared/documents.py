"""Reads YAML as plain values, and remembers the line of each.

Rule: a scalar is the text that stands in the file. So a topic named `on` is not `True`, and a value
`1_000` is not 1000. Only YAML's null becomes None. A key that is there twice is refused, as is
whatever a plain document doesn't have: tags, and keys that are no text.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from logberg.cli.failure import Failure

VALUES_MAX: Final = 200_000
"""The most values of a document. A few lines with aliases can stand for billions."""
_NULL: Final = "tag:yaml.org,2002:null"
_PLAIN: Final = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("bool", "float", "int", "map", "merge", "null", "seq", "str", "timestamp", "value")
)
"""The tags that YAML itself finds for values without one."""
_DEEPEST: Final = 20


class Document(NamedTuple):
    """One document of a file."""

    name: str
    """The file's name, as it is shown."""
    folder: Path
    """Relative paths in the document start here."""
    value: Any
    lines: dict[str, int]
    """The line of each value by its path, such as `$.topics[0].name`."""

    def where(self, path: str) -> str:
        """Return `file:line` of a value, or of what it would be in."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return f"{self.name}:{self.lines.get(path or '$', 1)}"


def documents(text: str, name: str, folder: Path) -> Iterator[Document]:
    """Yield the documents of a file that aren't empty. Raises Failure."""
    try:
        for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
            lines: dict[str, int] = {}
            value = _Reader(name, lines).read(node, "$", 0)
            if value is not None:
                yield Document(name, folder, value, lines)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = name if mark is None else f"{name}:{mark.line + 1}"
        raise Failure(f"{place}: this is not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise Failure(f"{name}: this is not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise Failure(f"{name}: values lie too deep in each other") from None


class _Reader:
    """Turns nodes into values."""

    def __init__(self, name: str, lines: dict[str, int]) -> None:
        self._name = name
        self._lines = lines
        self._left = VALUES_MAX

    def read(self, node: yaml.Node, path: str, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise self._refusal(node, "too many values, or values too deep in each other")
        self._lines.setdefault(path, node.start_mark.line + 1)
        if node.tag not in _PLAIN:
            raise self._refusal(node, f"the tag {node.tag!r} is not supported; leave it out")
        if isinstance(node, yaml.ScalarNode):
            return None if node.tag == _NULL else node.value
        if isinstance(node, yaml.SequenceNode):
            return [
                self.read(each, f"{path}[{number}]", depth + 1)
                for number, each in enumerate(node.value)
            ]
        return self._mapping(node, path, depth)

    def _mapping(self, node: yaml.Node, path: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _NULL:
                raise self._refusal(key, "a key must be a text")
            if key.value in found:
                raise self._refusal(key, f"{key.value!r} is there twice; keep one of them")
            here = f"{path}.{key.value}"
            self._lines[here] = key.start_mark.line + 1
            found[key.value] = self.read(value, here, depth + 1)
        return found

    def _refusal(self, node: yaml.Node, why: str) -> Failure:
        return Failure(f"{self._name}:{node.start_mark.line + 1}: {why}")
