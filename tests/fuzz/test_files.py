"""Changed files with good checksums are refused, or load and explain; nothing crashes.

Only the checks of what a file says stand between it and the compiled code. A file that ends the
process stays where the test has written it.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz_child import examples, few_or_many
from fuzz_files import changed_files, load_and_explain, write_saved


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return write_saved(tmp_path_factory.mktemp("saved"))


def test_files_that_were_not_changed_explain(saved):
    for name, (path, people) in saved.items():
        assert load_and_explain(path, people) == "explained", name


@few_or_many
def test_a_changed_file_is_refused_or_explains(share, saved, tmp_path, child):
    outcomes = []

    @examples(share, 1.5)
    @given(st.data())
    def check(data):
        source, people = saved[data.draw(st.sampled_from(sorted(saved)))]
        path = tmp_path / "changed.mcce"
        path.write_bytes(data.draw(changed_files(source)))
        outcomes.append(child.run(load_and_explain, path, people))

    check()

    assert set(outcomes) <= {"refused", "failed", "explained"}
    assert share == "few" or {"refused", "explained"} <= set(outcomes)
