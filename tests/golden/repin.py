"""Write the pinned answers anew: ``python tests/golden/repin.py``, then read the difference.

Right only where answers are meant to change; those of the paper's search are left alone unless
``--paper`` is given.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).parent
    sys.path.insert(0, str(here.parent / "helpers"))
    from golden_cases import SITUATIONS
    from pins import write_pins

    of = runpy.run_path(str(here / "test_searches.py"))
    write_pins(
        of["ANSWERS"],
        {f"{name}, {search}": of["lines"](name, search) for name, search in of["CASES"]},
    )
    write_pins(
        of["ANALYSES"],
        {
            f"{name}, {search}": described(search)
            for name, described in of["ANALYSED"].items()
            for search in of["OF_ANSWERS"]
        },
    )
    if "--paper" in sys.argv[1:]:
        of = runpy.run_path(str(here / "test_answers.py"))
        of["TABLE"].write_text(of["table"](), encoding="utf-8")
        write_pins(of["ANSWERS"], {name: what.lines("paper") for name, what in SITUATIONS.items()})
        write_pins(of["LIKELIHOODS"], {name: of["likelihoods"](name) for name in of["DENSITIES"]})
