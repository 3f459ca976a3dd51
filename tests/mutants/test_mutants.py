"""Every planted bug still fits the code; ``python tests/mutants`` shows which tests notice it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_every_planted_bug_can_be_planted():
    patches = sorted(FOLDER.glob("*.patch"))

    unfit = [
        patch.stem
        for patch in patches
        if subprocess.run(["git", "apply", "--check", patch], cwd=FOLDER.parents[1]).returncode
    ]

    assert len(patches) >= 20
    assert unfit == []
