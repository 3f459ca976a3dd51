"""Without torch everything but the methods that need it works, and these say what to install."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import pandas as pd, mcce, mcce.predictors
from mcce import baselines
frame = pd.DataFrame({"x": range(20)})
class Half:
    offers_gradients = True
    def __call__(self, rows): return rows["x"] / 20
    def encode_inputs(self, rows): return rows[["x"]].to_numpy(float) / 20
    def differentiate(self, inputs): return inputs[:, 0]
for name in ("Wachter", "CCHVAE", "REViSE", "CLUE", "CRUDS", "CEM"):
    explainer = getattr(baselines, name)(Half(), (0.5, 1.0))
    try:
        explainer.fit(frame)
    except mcce.MissingExtraError as error:
        assert isinstance(error, ImportError)
        assert str(error) == f'{name} needs torch: pip install "mcce[deep]".', error
    else:
        raise AssertionError(name)
print(len(baselines.NearestUnlike(Half(), (0.5, 1.0)).fit(frame).explain(frame.head(3)).frame))
"""


def test_without_torch_the_package_works_and_errors_name_the_extra():
    command = [sys.executable, "-c", WITHOUT_TORCH]

    done = subprocess.run(command, capture_output=True, text=True)

    assert (done.returncode, done.stdout.strip()) == (0, "3"), done.stderr


def test_no_module_of_the_baselines_loads_torch():
    program = (
        "import sys, mcce.baselines, mcce.predictors.gradients; assert 'torch' not in sys.modules"
    )

    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
