"""How many examples hypothesis tries; loaded by the settings of all tests."""

import os

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("quick", parent=settings.get_profile("ci"), max_examples=20)
settings.register_profile("brief", parent=settings.get_profile("ci"), max_examples=10)
settings.register_profile("long", parent=settings.get_profile("ci"), max_examples=2000)
# For planted bugs: that an example fails is enough, the smallest one is not looked for.
settings.register_profile(
    "mutants", parent=settings.get_profile("quick"), phases=(Phase.explicit, Phase.generate)
)
# New examples each time, for `make fuzz`.
settings.register_profile(
    "fuzz",
    parent=settings.get_profile("ci"),
    derandomize=False,
    max_examples=int(os.environ.get("MCCE_FUZZ_EXAMPLES", "300")),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
