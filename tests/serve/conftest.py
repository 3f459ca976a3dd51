"""Services that tests share, and a black box that can be held."""

from __future__ import annotations

import pytest

from mcce.serve import create_app
from served_bank import Gate, fitted, running


@pytest.fixture(scope="session")
def explainer():
    """An explainer of the bank; nobody changes it."""
    return fitted()


@pytest.fixture(scope="session")
def client(explainer):
    """A client of the service with all defaults."""
    with running(create_app(explainer)) as client:
        yield client


@pytest.fixture
def gate():
    """A black box that can be held; it is let go in the end."""
    made = Gate()
    yield made
    made.opened.set()
