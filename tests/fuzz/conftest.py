"""What the tests of this folder share."""

from __future__ import annotations

import pytest

from fuzz_child import Child


@pytest.fixture(scope="session")
def child():
    child = Child()
    yield child
    child.close()
