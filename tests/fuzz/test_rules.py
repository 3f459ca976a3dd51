"""Hostile rule files and conditions: used or refused in few words, little time and memory."""

from __future__ import annotations

import sys

import pytest
from hypothesis import example, given

from fuzz_child import examples, few_or_many
from fuzz_rules import (
    CONDITIONS,
    FACTOR,
    FILES,
    MAX_MB,
    MAX_SECONDS,
    use_condition,
    use_file,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="measures as POSIX does")


def assert_fine(taken, outcomes):
    outcome, seconds, mb = taken
    assert outcome in ("accepted", "refused")
    assert seconds <= FACTOR * MAX_SECONDS
    assert mb <= FACTOR * MAX_MB
    outcomes.append(outcome)


@few_or_many
def test_a_hostile_file_is_used_or_refused(share, child, tmp_path):
    outcomes = []

    @examples(share)
    @given(FILES)
    def check(content):
        path = tmp_path / "rules.toml"
        path.write_bytes(content)
        assert_fine(child.run(use_file, path), outcomes)

    check()

    assert share == "few" or set(outcomes) == {"accepted", "refused"}


@few_or_many
def test_a_hostile_condition_is_used_or_refused(share, child):
    outcomes = []

    @examples(share)
    @given(CONDITIONS)
    @example(" and ".join(["age > 1"] * 3000))  # was quoted in full
    def check(text):
        assert_fine(child.run(use_condition, text), outcomes)

    check()

    assert share == "few" or set(outcomes) == {"accepted", "refused"}
