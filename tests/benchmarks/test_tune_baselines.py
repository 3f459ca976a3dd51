"""Every method is tuned with the same budget, over settings that include its defaults."""

import inspect

import pytest

from mcce import baselines

pytest.importorskip("threadpoolctl", reason="threadpoolctl is not installed")

from tune_baselines import SETTINGS


@pytest.mark.parametrize("method", SETTINGS)
def test_eight_settings_are_tried_once_each_and_the_defaults_are_among_them(method):
    tried = SETTINGS[method]

    defaults = inspect.signature(getattr(baselines, method)).parameters
    assert len(tried) == len({str(settings) for settings in tried}) == 8
    assert {name: defaults[name].default for name in tried[0]} in tried


@pytest.mark.parametrize(
    ("method", "before"),
    [
        ("Wachter", {"learning_rate": 0.01, "n_steps": 1000}),
        ("REViSE", {"weight": 0.5, "kl_weight": 0.3, "learning_rate": 0.1}),
        ("CRUDS", {"weight": 0.001, "learning_rate": 0.008, "n_latent": 8, "hidden": 64}),
        ("CEM", {"sparsity": 0.9, "realism": 1.0, "margin": 0.1}),
    ],
)
def test_the_settings_begin_with_the_defaults_before_tuning(method, before):
    assert SETTINGS[method][0] == before
