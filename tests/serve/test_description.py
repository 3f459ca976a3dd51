"""The service against its own description, by requests that nobody thought of."""

from __future__ import annotations

import os
from collections import Counter

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from mcce.serve import ServiceLimits, ServiceSettings, create_app

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# With 360, about 5,000 requests.
N_EXAMPLES = int(os.environ.get("MCCE_FUZZ_EXAMPLES", "8"))


@pytest.fixture(scope="module")
def described(explainer):
    limits = ServiceLimits(people=3, answers=2, seconds=1.0)
    app = create_app(explainer, ServiceSettings(limits=limits))
    return schemathesis.openapi.from_asgi("/openapi.json", app)


def test_every_route_keeps_its_description(described):
    tried = Counter()

    def try_one(case):
        response = case.call()
        tried[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    how = {"deadline": None, "phases": [Phase.generate], "suppress_health_check": list(HealthCheck)}
    for operation in described.get_all_operations():
        asked = operation.ok()
        negative = asked.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)
        tests = given(case=asked.as_strategy() | negative)(try_one)
        settings(max_examples=N_EXAMPLES, **how)(tests)()

    assert tried.total() > 100
    assert tried[200] > 10, tried
