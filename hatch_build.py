"""Put everything under one import root while a wheel is built (ADR 0026).

In the repository the packages lie side by side and import each other by `from ledger.batch import
Batch`. pyproject.toml moves their folders into `logberg/` in the wheel. This hook rewrites the
imports to match, `from logberg.ledger.batch import Batch`. It changes nothing else, so line numbers
in tracebacks are those of the repository.

Rule: the hook rewrites import statements only, at the positions that `ast` reports. It can't know
what a string means, so it refuses to build when a string holds the name of a module that moves.
Derive such a name from `__name__` or `__package__`: they are right in both places.

An editable install (`pip install -e .`) points at the repository, and nothing is rewritten.
"""

import ast
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FROM = re.compile(rb"from[ \t]+")
_IMPORTERS = frozenset({"__import__", "find_spec", "import_module", "run_module"})
_ADVICE = "derive the name from __name__ or __package__"


class CannotRewriteError(Exception):
    """A file holds what this hook does not rewrite. One argument a place: `file:line: what`."""


class Place(NamedTuple):
    """Where the new root is inserted."""

    line: int
    column: int
    """In bytes, from 0."""


class OneRoot:
    """Moves top-level packages below another one."""

    def __init__(self, root: str, moved: Collection[str], modules: Collection[str]) -> None:
        """`root`: the new root; `moved`: the packages that move below it; `modules`: all names.

        Names of modules are those of the repository, dotted.
        """
        self._prefix = f"{root}.".encode()
        self._moved = frozenset(moved)
        self._modules = frozenset(modules)
        packages = "|".join(sorted(moved))
        self._name = re.compile(rf"(?<![\w./-])(?:{packages})(?:\.\w+)+")
        self._run = re.compile(rf"-m[\s'\",]+(?:{packages})\b")
        self._unfinished = re.compile(rf"(?<![\w./-])(?:{packages})(?:\.\w+)*\.$")

    def rewritten(self, source: bytes, file: str) -> bytes:
        """Return a module with its imports rewritten; `file` names it in errors.

        Raises CannotRewriteError, SyntaxError.
        """
        tree = ast.parse(source, file)
        objections: list[str] = []
        places: list[Place] = []
        lines = source.splitlines(keepends=True)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                places += self._of_from(node, lines, file, objections)
            elif isinstance(node, ast.Import):
                places += self._of_import(node, file, objections)
        objections += [f"{file}:{line}: {what}" for line, what in self._names_in_strings(tree)]
        if objections:
            raise CannotRewriteError(*objections)
        for line, column in sorted(places, reverse=True):
            text = lines[line - 1]
            lines[line - 1] = text[:column] + self._prefix + text[column:]
        result = b"".join(lines)
        self._check(tree, result, file)
        return result

    def _moves(self, module: str) -> bool:
        return module.partition(".")[0] in self._moved

    def _of_from(
        self, node: ast.ImportFrom, lines: list[bytes], file: str, objections: list[str]
    ) -> Iterator[Place]:
        if node.level or node.module is None or not self._moves(node.module):
            return
        start = _FROM.match(lines[node.lineno - 1], node.col_offset)
        if start is None or not lines[node.lineno - 1].startswith(
            node.module.encode(), start.end()
        ):
            objections.append(
                f"{file}:{node.lineno}: write `from {node.module} import` on one line"
            )
            return
        yield Place(node.lineno, start.end())

    def _of_import(self, node: ast.Import, file: str, objections: list[str]) -> Iterator[Place]:
        for name in node.names:
            if not self._moves(name.name):
                continue
            if name.asname is None:
                # This binds the top-level name, which is another one in the wheel.
                objections.append(
                    f"{file}:{name.lineno}: `import {name.name}`: write `from … import …`"
                )
                continue
            yield Place(name.lineno, name.col_offset)

    def _names_in_strings(self, tree: ast.Module) -> Iterator[tuple[int, str]]:
        """Yield line and objection for each string that names a module that moves.

        A string that stands as a statement is prose. It may mention modules by the names that they
        have in the repository, but it may not show how to run one.
        """
        prose = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if found := self._run.search(node.value):
                    yield node.lineno, f"a string says `{found[0]}`: {_ADVICE}"
                elif node not in prose and (name := self._module_in(node.value)):
                    yield node.lineno, f"a string names the module {name}: {_ADVICE}"
            elif isinstance(node, ast.JoinedStr):
                for part, following in zip(node.values, node.values[1:], strict=False):
                    if (
                        isinstance(part, ast.Constant)
                        and isinstance(following, ast.FormattedValue)
                        and self._unfinished.search(str(part.value))
                    ):
                        yield node.lineno, f"a string begins a module's name: {_ADVICE}"
            elif isinstance(node, ast.Call) and node.args and _called(node) in _IMPORTERS:
                first = node.args[0]
                if isinstance(first, ast.Constant) and first.value in self._moved:
                    yield node.lineno, f"imports {first.value} by a string: {_ADVICE}"

    def _module_in(self, text: str) -> str | None:
        """Return the first module's name in a text, or None. `metadata.version` names none."""
        for found in self._name.finditer(text):
            parts = found[0].split(".")
            for length in range(len(parts), 1, -1):
                name = ".".join(parts[:length])
                if name in self._modules:
                    return name
        return None

    def _check(self, before: ast.Module, result: bytes, file: str) -> None:
        """Compare with the same change made to the parsed module: nothing else may differ."""
        prefix = self._prefix.decode()
        for node in ast.walk(before):
            if isinstance(node, ast.ImportFrom):
                if not node.level and node.module is not None and self._moves(node.module):
                    node.module = prefix + node.module
            elif isinstance(node, ast.Import):
                for name in node.names:
                    if self._moves(name.name):
                        name.name = prefix + name.name
        if ast.dump(before) != ast.dump(ast.parse(result, file)):
            raise CannotRewriteError(f"{file}: rewriting the imports changed something else")


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def module_name(file: Path) -> str:
    """Return the dotted name of a module from its path below the repository's root."""
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def rewrite_all(
    files: Mapping[str, Path], sources: Mapping[str, str], root: str, out: Path
) -> dict[str, str]:
    """Write the modules that change below `out`. Returns written path → path in the wheel.

    `files`: path in the wheel → path in the repository, relative to the working directory or
    absolute; `sources`: folder in the repository → folder in the wheel. Raises CannotRewriteError
    with all objections, SyntaxError, OSError.
    """
    back = {target.rstrip("/"): source.rstrip("/") for source, target in sources.items()}
    modules = {target: module_name(_in_repository(Path(target), back)) for target in files}
    rewriter = OneRoot(root, set(back.values()), modules.values())
    changed: dict[str, str] = {}
    objections: list[str] = []
    for target, file in files.items():
        if file.suffix != ".py":
            continue
        source = file.read_bytes()
        try:
            result = rewriter.rewritten(source, _in_repository(Path(target), back).as_posix())
        except CannotRewriteError as error:
            objections += error.args
            continue
        if result != source:
            written = out / target
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_bytes(result)
            changed[str(written)] = target
    if objections:
        raise CannotRewriteError(*objections)
    return changed


def _in_repository(target: Path, back: Mapping[str, str]) -> Path:
    for moved_to, source in back.items():
        if target.is_relative_to(moved_to):
            return source / target.relative_to(moved_to)
    return target


class OneRootHook(BuildHookInterface[Any]):
    """Called by hatchling around the build of a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Rewrite the modules of a wheel; leave an editable install alone."""
        if version == "editable":
            return
        files: dict[str, Path] = {}
        for file in self.build_config.builder.recurse_selected_project_files():
            if file.distribution_path in files:
                self.app.abort(
                    f"{file.relative_path} and {files[file.distribution_path]} would both become "
                    f"{file.distribution_path}: rename one of them"
                )
            files[file.distribution_path] = Path(file.path)
        self._written = tempfile.TemporaryDirectory(prefix="one-root-")
        try:
            changed = rewrite_all(
                files, self.build_config.sources, self.metadata.core.name, Path(self._written.name)
            )
        except CannotRewriteError as error:
            self.app.abort("These would be wrong in the wheel:\n" + "\n".join(error.args))
        build_data["force_include"].update(changed)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was written on the way."""
        if version != "editable":
            self._written.cleanup()
