"""The service against its own description, by requests that nobody thought of."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from mcce.serve import Limits, ServiceSettings, create_app
from served_bank import fitted

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# With 360, about 5,000 requests.
N_EXAMPLES = int(os.environ.get("MCCE_FUZZ_EXAMPLES", "30"))


@pytest.fixture(scope="module")
def described() -> Any:
    limits = Limits(people=3, answers=2, seconds=1.0, body_seconds=5.0)
    app = create_app(fitted(), ServiceSettings(limits=limits))
    return schemathesis.openapi.from_asgi("/openapi.json", app)


def test_every_route_keeps_its_description(described: Any) -> None:
    tried: Counter[int] = Counter()
    for operation in described.get_all_operations():
        strategy = operation.ok().as_strategy() | operation.ok().as_strategy(
            generation_mode=schemathesis.GenerationMode.NEGATIVE
        )
        _try_all(strategy, tried)

    assert tried.total() > 100
    assert tried[200] > 20, tried


def _try_all(strategy: Any, tried: Counter[int]) -> None:
    from hypothesis import given

    @settings(
        max_examples=N_EXAMPLES,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def try_one(case: Any) -> None:
        response = case.call()
        tried[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    try_one()
