"""The build hook rewrites imports, and refuses what it can't rewrite."""

import ast

import pytest

from hatch_build import CannotRewriteError, OneRoot, rewrite_all

MODULES = ("logberg", "logberg.cli", "ledger", "ledger.batch", "audit", "audit.spark.submit")
ROOT = OneRoot("logberg", ("ledger", "audit"), MODULES)


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("from ledger.batch import Batch\n", "from logberg.ledger.batch import Batch\n"),
        ("from  ledger import batch", "from  logberg.ledger import batch"),
        ("import ledger.batch as b, os\n", "import logberg.ledger.batch as b, os\n"),
        (
            "from ledger.batch import (\n    Batch,  # noqa\n)\n",
            "from logberg.ledger.batch import (\n    Batch,  # noqa\n)\n",
        ),
        (
            "é = 1; from ledger import batch; from audit import spark\n",
            "é = 1; from logberg.ledger import batch; from logberg.audit import spark\n",
        ),
        (
            "if True:\n\tfrom ledger import batch\r\n",
            "if True:\n\tfrom logberg.ledger import batch\r\n",
        ),
    ],
)
def test_imports_get_the_root(source: str, result: str) -> None:
    assert ROOT.rewritten(source.encode(), "a.py").decode() == result


@pytest.mark.parametrize(
    "source",
    [
        "from ledgers import x\nfrom logberg.cli import main\nfrom . import ledger\nimport os\n",
        '"""See `ledger.batch` and `audit.spark.submit`."""\n# from ledger import batch\n',
        "x = ['ledger', 'metadata.version', 'ledger.frames', 'my-ledger.batch', 'a/ledger.batch']",
        "import_module(f'logberg.commands.{name}')\n",
        "ledger = 1\nledger.batch = 2\n",
    ],
)
def test_everything_else_stays_as_it_is(source: str) -> None:
    assert ROOT.rewritten(source.encode(), "a.py").decode() == source


@pytest.mark.parametrize(
    ("source", "objection"),
    [
        ("import ledger", "a.py:1: `import ledger`: write `from … import …`"),
        ("\nimport ledger.batch", "a.py:2: `import ledger.batch`: write"),
        ("from \\\n  ledger import batch", "a.py:1: write `from ledger import` on one line"),
        ("x = 'ledger.batch'", "a.py:1: a string names the module ledger.batch: derive"),
        ("x = 'the class ledger.batch.Batch'", "a.py:1: a string names the module ledger.batch"),
        ("'''Doc.\n\n    python -m audit.spark.submit\n'''", "a.py:1: a string says `-m audit`"),
        ("run(['-m', 'audit.spark.submit'])", "a string names the module audit.spark.submit"),
        ("x = f'audit.spark.{name}'", "a.py:1: a string begins a module's name: derive"),
        ("import_module('ledger')", "a.py:1: imports ledger by a string: derive"),
        ("importlib.util.find_spec('audit')", "a.py:1: imports audit by a string"),
    ],
)
def test_what_would_be_wrong_in_the_wheel_is_refused(source: str, objection: str) -> None:
    with pytest.raises(CannotRewriteError) as refused:
        ROOT.rewritten(source.encode(), "a.py")
    assert objection in refused.value.args[0]


def test_all_objections_come_at_once_and_name_the_file_in_the_repository(tmp_path) -> None:
    (tmp_path / "batch.py").write_text("import ledger\nx = 'ledger.batch'\n")
    (tmp_path / "cli.py").write_text("import ledger.batch\n")
    files = {
        "logberg/cli.py": tmp_path / "cli.py",
        "logberg/ledger/batch.py": tmp_path / "batch.py",
    }
    with pytest.raises(CannotRewriteError) as refused:
        rewrite_all(files, {"ledger/": "logberg/ledger/"}, "logberg", tmp_path / "out")
    assert [said.partition(": ")[0] for said in refused.value.args] == [
        "logberg/cli.py:1",
        "ledger/batch.py:1",
        "ledger/batch.py:2",
    ]


def test_a_rewriting_that_changes_more_is_refused() -> None:
    tree = ast.parse("from ledger import batch\n")
    with pytest.raises(CannotRewriteError, match="changed something else"):
        ROOT._check(tree, b"from logberg.audit import batch\n", "a.py")
