"""The docs agree with the code: generated parts, links, glossary words, versions."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

from audit.findings.rule_files import builtin_rules
from audit.places.archived_disk import ARCHIVE_VARIABLE
from audit.tables import BY_NAME, KEPT
from controller.http.openapi import openapi_document
from controller.http.routes import ROUTES
from logberg.processes.controller_process import EXIT_STOPPED
from logberg.processes.settings.broker_settings import BrokerSettings
from logberg.processes.settings.controller_settings import ControllerSettings
from logberg.version import VERSION
from metadata.errors import ErrorCode
from runtime.defects import EXIT_DEFECT
from tests.docs import source
from tests.docs.audit_tables import PAGE as AUDIT_TABLES
from tests.docs.audit_tables import QUERIES_PAGE as AUDIT_QUERIES
from tests.docs.generate import (
    EVENTS,
    FORMAT,
    KAFKA_KEYS,
    REFERENCE,
    SAFETY,
    SCALE,
    log_events,
    reference,
    safety,
    sentences,
)
from tests.docs.pages import anchors, links, pages

DOCS = source.ROOT / "docs"
REMEDY = "run: python -m tests.docs.generate"


@pytest.mark.parametrize(
    "page",
    [REFERENCE, FORMAT, KAFKA_KEYS, SCALE, AUDIT_TABLES, AUDIT_QUERIES],
    ids=lambda page: page.name,
)
def test_the_reference_is_current(page: Path) -> None:
    text = page.read_text()
    assert reference(text) == text, REMEDY


def test_the_reference_names_all_that_there_is() -> None:
    text = REFERENCE.read_text()
    for kind in (ControllerSettings, BrokerSettings):
        assert [s.key for s in source.settings(kind) if f"| `{s.key}` |" not in text] == []
    assert [route.path for route in ROUTES if f"{route.method} {route.path}`" not in text] == []
    assert [code for code in ErrorCode if f"`{code}`" not in text] == []
    assert [metric.name for metric in source.metrics() if f"`{metric.name}`" not in text] == []
    assert f"\n| {EXIT_STOPPED} | " in text
    assert f"\n| {EXIT_DEFECT} | " in text


def test_the_reference_names_what_an_agent_answers() -> None:
    text = REFERENCE.read_text().partition("## An agent's HTTP interface")[2].partition("\n##")[0]
    made = (source.ROOT / "broker_agent/api.py").read_text()
    own = re.findall(r'^ +"(/[\w/]+)": OwnPath\(', made, re.MULTILINE)
    assert sorted(own) == sorted(re.findall(r"^\| `GET ([^`]+)`", text, re.MULTILINE))


def test_the_reference_names_what_an_agent_answers_its_host() -> None:
    code = (source.ROOT / "broker_agent/host_api.py").read_text()
    text = REFERENCE.read_text().partition("### An agent's host socket")[2].partition("\n## ")[0]
    own = set(re.findall(r'\("([A-Z]+)", "([a-z-]+)"\)', code))
    assert own == set(re.findall(r"^\| `([A-Z]+) /v1/host/([a-z-]+)", text, re.MULTILINE))
    assert len(own) == 7


@pytest.mark.parametrize("kind", [ControllerSettings, BrokerSettings])
def test_every_setting_says_what_it_means(kind: type) -> None:
    obvious = {f"{of}endpoints.{what}" for of in ("", "broker.") for what in ("host", "port")}
    silent = {setting.key for setting in source.settings(kind) if not setting.meaning}
    assert silent <= obvious


def test_the_catalogue_of_events_is_current() -> None:
    text = EVENTS.read_text()
    assert log_events(text) == text, REMEDY


def test_the_safety_page_is_made_of_what_was_run() -> None:
    text = SAFETY.read_text()
    assert safety(text) == text, REMEDY


def test_every_event_has_its_sentence() -> None:
    said = sentences(EVENTS.read_text())
    assert set(said) == {event.name for event in source.events()}
    assert [name for name, sentence in said.items() if not sentence.endswith(".")] == []


def test_events_are_named_alike() -> None:
    odd = [
        e.name for e in source.events() if not re.fullmatch("[a-z][a-z0-9]*(_[a-z0-9]+)*", e.name)
    ]
    assert odd == []


def test_a_new_event_and_one_that_is_gone_are_noticed() -> None:
    text = EVENTS.read_text()
    first = source.events()[0].name
    assert log_events(text.replace(f"`{first}`", "`no_such_event`")) != text
    assert "no_such_event" not in log_events(text.replace(f"`{first}`", "`no_such_event`"))


def test_names_that_are_not_constants_are_refused() -> None:
    call = ast.parse('log.info(f"an_{event}")').body[0]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    with pytest.raises(AssertionError, match="constant"):
        source._event_of(call.value, "info", {})


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        target, _, anchor = link.partition("#")
        if "://" in target or target.startswith("mailto:"):
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_paths_that_pages_name_are_there(page: Path) -> None:
    """Code files and folders in backticks, as the tour is full of them."""
    folders = "|".join((*source.PACKAGES, "tests", "docs", "examples", "benchmarks"))
    named = set(re.findall(rf"`((?:{folders})/[\w./-]*)`", page.read_text()))
    assert sorted(name for name in named if not (source.ROOT / name).exists()) == []


def test_every_column_says_what_it_means() -> None:
    for table in (*BY_NAME.values(), *KEPT.values()):
        assert table.meaning.endswith("."), table.name
        for column in table.columns:
            assert column.meaning.endswith("."), f"{table.name}.{column.name}"


def test_the_page_of_jobs_names_each() -> None:
    page = (source.ROOT / "docs" / "audit" / "pipeline.md").read_text()
    assert [name for name in BY_NAME if f"`{name}`" not in page] == []


def test_the_runbook_quotes_what_is_said() -> None:
    """An operator searches for the words that stand before them."""
    text = (DOCS / "runbook.md").read_text()
    said = "\n".join(source.texts())
    known = [word for e in source.events() for word in (e.name, *e.fields)]
    known += [m.name for m in source.metrics()]
    known += [s.key for kind in (ControllerSettings, BrokerSettings) for s in source.settings(kind)]
    known += [rule.name for rule in builtin_rules().rules]
    unknown = []
    for quoted in re.findall("`([^`\n]+)`", text):
        if re.fullmatch("[a-z]+(_[a-z0-9]+)+", quoted):
            unknown += [quoted] if quoted not in known else []
        elif " " in quoted and not re.match("logberg |--|GET |POST ", quoted):
            pieces = [piece.strip() for piece in re.split("[…]|\\d+|<[^>]+>", quoted)]
            unknown += [piece for piece in pieces if len(piece) > 3 and piece not in said]
    assert not unknown, unknown
    codes = set(re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", text))
    assert codes - set(ErrorCode) - {"CERTIFICATE_REFUSED", ARCHIVE_VARIABLE} == set()


SPARKS_OWN = ("master",)
"""Spark calls a part of its own so; its page can't say it otherwise."""


def banned() -> dict[str, str]:
    """What the glossary has another word for, and which."""
    table = (DOCS / "glossary.md").read_text().partition("## Words that we don't use")[2]
    rows = re.findall(r"^\| (?!not |-)([^|]+) \| ([^|]+) \|$", table, re.MULTILINE)
    return {word: instead for words, instead in rows for word in words.split(", ")}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_words_are_the_glossarys(page: Path) -> None:
    text = page.read_text().partition("## Words that we don't use")[0]
    assert len(banned()) > 10
    theirs = SPARKS_OWN if page.name == "spark.md" else ()
    found = [
        f"{match[0]!r}: say {instead}"
        for word, instead in banned().items()
        if word not in theirs
        for match in re.finditer(
            rf"\b{re.escape(word)}s?\b", text, 0 if word.isupper() else re.IGNORECASE
        )
    ]
    assert found == []


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((source.ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION


def test_pages_name_nothing_of_the_machine_they_were_written_on() -> None:
    for page in pages():
        assert not re.search(r"/(?:home|root|opt)/", page.read_text()), page


# -- OpenAPI --------------------------------------------------------------------------------------

DOCUMENT = json.loads(json.dumps(openapi_document(VERSION)))
_METHODS = {"get", "post", "put", "delete", "patch", "head", "options"}


def test_openapi_covers_every_route_and_nothing_else() -> None:
    said = {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item}
    assert said == {(route.method, route.path) for route in ROUTES}


def test_openapi_has_the_shape_that_openapi_wants() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    assert set(DOCUMENT["info"]) >= {"title", "version"}
    assert DOCUMENT["info"]["version"] == VERSION
    ids = []
    for path, item in DOCUMENT["paths"].items():
        assert path.startswith("/")
        assert set(item) <= _METHODS
        for method, operation in item.items():
            ids.append(operation["operationId"])
            assert operation["summary"]
            assert operation["responses"]
            for status, response in operation["responses"].items():
                assert re.fullmatch(r"default|[1-5](\d\d|XX)", status)
                assert response["description"]
            _check_parameters(path, operation.get("parameters", []))
            assert method in ("post", "delete", "put", "patch") or "requestBody" not in operation
    assert len(set(ids)) == len(ids)


def _check_parameters(path: str, parameters: list[dict[str, object]]) -> None:
    places = [(parameter["in"], parameter["name"]) for parameter in parameters]
    assert len(set(places)) == len(places)
    for parameter in parameters:
        assert parameter["in"] in ("path", "query", "header")
        assert parameter["schema"]
        assert parameter.get("required", False) is (parameter["in"] == "path")
    in_path = {name for place, name in places if place == "path"}
    assert in_path == set(re.findall(r"\{(\w+)\}", path))


def test_openapi_references_resolve_and_every_schema_is_used() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(DOCUMENT)))
    assert referred == set(schemas)


def test_openapi_schemas_say_what_is_sent() -> None:
    request = DOCUMENT["components"]["schemas"]["MetadataFetchRequest"]
    assert "brokerEpoch" in request["properties"]
    assert request["additionalProperties"] is False
    assert set(request["required"]) == {"clusterId", "brokerId", "incarnationId"}


@pytest.mark.parametrize(
    ("path", "method", "own"),
    [
        ("/health/ready", "get", "HealthReply"),
        ("/v1/metadata/fetch", "post", "MetadataFetchReply"),
        ("/v1/topics", "get", None),
    ],
)
def test_openapi_says_which_routes_have_errors_of_their_own(
    path: str, method: str, own: str | None
) -> None:
    """schemathesis found both on real controllers."""
    content = DOCUMENT["paths"][path][method]["responses"]["default"]["content"]
    error = {"$ref": "#/components/schemas/ErrorReply"}
    schema = content["application/json"]["schema"]
    assert schema == (
        error if own is None else {"anyOf": [{"$ref": f"#/components/schemas/{own}"}, error]}
    )


def test_openapi_says_that_the_log_has_two_formats() -> None:
    content = DOCUMENT["paths"]["/v1/log"]["get"]["responses"]["200"]["content"]
    kinds = [{"$ref": f"#/components/schemas/{name}"} for name in ("ReadLogReply", "LogReply")]
    assert content["application/json"]["schema"] == {"anyOf": kinds}


@pytest.mark.parametrize(
    ("path", "method", "name", "schema"),
    [
        ("/v1/topics", "get", "limit", {"type": "integer", "minimum": 1, "maximum": 10**18 - 1}),
        ("/v1/topics", "get", "minOffset", {"type": "integer", "minimum": 0}),
        ("/v1/topics", "get", "consistency", {"enum": ["linearizable", "stale"]}),
        ("/v1/topics", "get", "x-logberg-version", {"minimum": 1, "maximum": 2}),
        ("/v1/brokers/{id}", "get", "id", {"type": "integer", "minimum": 0}),
        ("/v1/tokens/{id}/renew", "post", "id", {"type": "string"}),
        ("/v1/log", "get", "format", {"enum": ["batches", "json"]}),
        ("/v1/topics", "post", "x-logberg-expect-offset", {"type": "integer", "minimum": 0}),
    ],
)
def test_openapi_says_which_values_a_parameter_may_have(
    path: str, method: str, name: str, schema: dict[str, object]
) -> None:
    parameters = DOCUMENT["paths"][path][method]["parameters"]
    (found,) = (each["schema"] for each in parameters if each["name"] == name)
    assert found.items() >= schema.items()
