"""The description of the service is true: requests made from it are answered as it says."""

from __future__ import annotations

import json
import re
import shutil
import warnings

import pytest

from depl.server.app import create_app
from depl.server.examples import EXAMPLES
from depl.server.live_model import load
from depl.server.security import Access

schemathesis = pytest.importorskip("schemathesis")
jsonschema = pytest.importorskip("jsonschema")

from hypothesis import HealthCheck, Phase, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

_EXAMPLES = 30
_OF_FILES = ("/v1/extract", "/v1/table", "/v1/table/columns", "/v1/jobs")


@pytest.fixture(scope="module")
def address(fitted_run, tmp_path_factory, uvicorn_running):
    """A service whose labels may be changed."""
    run = shutil.copytree(fitted_run, tmp_path_factory.mktemp("openapi") / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("depl.server.security._GUESSES", 10_000)  # wrong tokens are sent, too
        with uvicorn_running(create_app(load(run), access=Access(token="t"))) as server:
            yield server.url


def test_answers_are_as_described(address):
    import httpx

    # schemathesis turns limits of length into patterns, and compiling one for a million characters
    # takes longer than all requests; texts that long are tested elsewhere.
    description = re.sub(
        r'"maxLength":\s*1000000\b', '"maxLength":1000', httpx.get(f"{address}/openapi.json").text
    )
    schema = schemathesis.openapi.from_dict(json.loads(description))
    schema.config.update(base_url=address)
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) == 28
    # Any bytes are a file, but few are one that can be read.
    checked = [x for x in operations if x.path not in _OF_FILES]
    strategy = st.one_of([operation.as_strategy() for operation in checked])
    seen = set()

    @settings(
        max_examples=_EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def check(case):
        answer = case.call(headers={"Authorization": "Bearer t"})
        seen.add((case.operation.label, answer.status_code))
        assert answer.status_code < 500, (case.body, answer.text)
        # That a run does not reach a precision is answered with 422.
        may_refuse = case.operation.path == "/v1/predict"
        case.validate_response(
            answer, excluded_checks=[positive_data_acceptance] if may_refuse else []
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that make the requests
        check()
    assert {status for _, status in seen} >= {200, 404}


def test_the_description_needs_nothing_from_elsewhere(client):
    description = client.get("/openapi.json").json()
    assert "http" not in json.dumps(description["paths"]).replace("https_only", "")
    limits = description["components"]["schemas"]["PredictRequest"]["properties"]
    assert limits["texts"]["maxItems"] == 256
    assert limits["texts"]["items"]["maxLength"] == 1_000_000
    assert "security" not in description["paths"]["/v1/predict"]["post"]


def test_every_request_and_answer_has_an_example_that_is_true(client):
    description = client.get("/openapi.json").json()
    schemas = description["components"]["schemas"]
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            for body in bodies(operation):
                if "$ref" not in body:
                    continue  # the bytes of a file, or nothing
                name = body["$ref"].rpartition("/")[2]
                assert schemas[name].get("examples"), f"{method} {path}: {name}"
    # References lead to the description as a whole.
    registry = {"components": description["components"]}
    for name in EXAMPLES:
        validator = jsonschema.Draft202012Validator(registry | schemas[name])
        validator.validate(schemas[name]["examples"][0])


def bodies(operation):
    """The schemas of a request and of its answers."""
    for part in (operation.get("requestBody", {}), *operation["responses"].values()):
        for content in part.get("content", {}).values():
            yield content.get("schema", {})


def test_operations_have_names_for_generated_clients(client):
    paths = client.get("/openapi.json").json()["paths"]
    names = [operation["operationId"] for path in paths.values() for operation in path.values()]
    assert len(set(names)) == len(names)
    assert {"predict", "explain", "add_label", "give_feedback"} <= set(names)
