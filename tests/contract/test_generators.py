"""Every named generator keeps the promises of the protocol, and each check can fail."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE, ForestChain, ParameterError, TreeChain
from mcce.protocols import Capabilities, Draws, draw_keys, pick
from mcce.testing import check_generator

OURS = ["trees", "forest", "ctree"]
# Those that need columns with public domains, or a package beside, are checked with their own.
ELSEWHERE = {"private", "copula", "made", "ctgan", "parametric", "cgan"}


def test_every_name_is_checked():
    with pytest.raises(ParameterError, match="generator must be one of") as said:
        MCCE(lambda frame: frame["a"], generator="none").fit(pd.DataFrame({"a": [0.0, 1.0]}))

    listed = re.search(r"\[(.*?)\]", str(said.value)).group(1)
    assert set(re.findall(r"'(\w+)'", listed)) == set(OURS) | ELSEWHERE


@pytest.mark.parametrize("name", OURS)
def test_a_named_generator_keeps_the_promises(name):
    check_generator(name)


class Marginals:
    """Each mutable feature drawn by itself from the rows with the desired decision."""

    capabilities = Capabilities()

    def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
        self.mutable = rows.schema.mutable
        self.values = [rows.codes[at][is_desired] for at in self.mutable]
        return self

    def sample(self, request):
        words = draw_keys(request.keys, request.draws)
        return Draws(
            np.stack(
                [
                    values[pick(words, int(at), np.full(words.shape, values.size))]
                    for at, values in zip(self.mutable, self.values, strict=True)
                ]
            )
        )


class Inventing(Marginals):
    """Values of its own, numbered in another way in each call."""

    def sample(self, request):
        words = draw_keys(request.keys, request.draws)
        codes = np.stack([pick(words, int(at), np.full(words.shape, 3)) for at in self.mutable])
        table = pd.Series([0.5, 1.5, 2.5])
        return Draws(codes.astype(np.int32), [table] * self.mutable.size)


def test_variants_and_the_generators_of_users_keep_them_too():
    for generator in (
        TreeChain(visit_order="correlation", min_samples_leaf=20),
        TreeChain(max_features="sqrt"),
        ForestChain(sampling="pool", n_trees=4, bootstrap=False),
        Marginals(),
        Inventing(),
    ):
        check_generator(generator)


class NoFit:
    def sample(self, request): ...


class Undeclared(Marginals):
    capabilities = None


class Boastful(Marginals):
    capabilities = Capabilities(density=True)


class Forgetful(Marginals):
    def fit(self, rows, is_desired, **settings):
        super().fit(rows, is_desired, **settings)


class OtherSelf(Marginals):
    def fit(self, rows, is_desired, **settings):
        return Marginals().fit(rows, is_desired, **settings)


class Scribbling(Marginals):
    def fit(self, rows, is_desired, **settings):
        super().fit(rows, is_desired, **settings)
        rows.codes[0, 0] += 1
        return self


class Bare(Marginals):
    def sample(self, request):
        return super().sample(request).codes


class AllFeatures(Marginals):
    def sample(self, request):
        codes = super().sample(request).codes
        return Draws(np.concatenate([codes, codes[:1]]))


class Wide(Marginals):
    def sample(self, request):
        return Draws(super().sample(request).codes.astype(np.int64))


class OutOfRange(Marginals):
    def sample(self, request):
        return Draws(super().sample(request).codes + np.int32(1))


class Peeking(Marginals):
    def sample(self, request):
        codes = super().sample(request).codes
        codes[1] = np.minimum(request.given[self.mutable[1]], 3)[:, None]
        return Draws(codes)


class Crowded(Marginals):
    def sample(self, request):
        keys = request.keys + np.uint64(request.keys.size)
        return super().sample(replace(request, keys=keys))


class Positional(Marginals):
    """Draws something else once the groups come in another order than at first."""

    def fit(self, rows, is_desired, **settings):
        self.first = None
        return super().fit(rows, is_desired, **settings)

    def sample(self, request):
        keys = request.keys
        if keys.size > 1:
            self.first = keys if self.first is None else self.first
            keys = keys + np.uint64((keys != self.first).any())
        return super().sample(replace(request, keys=keys))


class Counting(Marginals):
    def sample(self, request):
        return super().sample(replace(request, draws=request.draws + request.draws.size))


class Fickle(Marginals):
    n_fits = 0

    def fit(self, rows, is_desired, **settings):
        Fickle.n_fits += 1
        self.salt = np.uint64(Fickle.n_fits)
        return super().fit(rows, is_desired, **settings)

    def sample(self, request):
        return super().sample(replace(request, keys=request.keys + self.salt))


class Locked(Marginals):
    def fit(self, rows, is_desired, **settings):
        self.key = lambda: None
        return super().fit(rows, is_desired, **settings)


def test_a_broken_promise_is_named():
    for generator, message in [
        (NoFit(), "must be usable by MCCE: generator must be one of"),
        (Undeclared(), "must declare what it can do"),
        (Boastful(), r"declares the capability 'density' but lacks \['log_likelihood'\]"),
        (Forgetful(), "fit returns the generator itself"),
        (OtherSelf(), "fit returns the generator itself"),
        (Scribbling(), "training rows that stay as they are"),
        (Bare(), "What sample returns: expected a mcce.protocols.Draws"),
        (AllFeatures(), r"codes of shape \(n_mutable, n_groups, n_draws\)"),
        (Wide(), "codes of dtype int32"),
        (OutOfRange(), "the codes of its table"),
        (Peeking(), "people with other mutable values"),
        (Crowded(), "without other groups"),
        (Positional(), "with the groups in another order"),
        (Counting(), "The draws 0 to 4 alone"),
        (Fickle(), "fitted with the same seed"),
        (Locked(), "Pickling the fitted generator"),
    ]:
        with pytest.raises(AssertionError, match=message):
            check_generator(generator)


class Loose(TreeChain):
    """Draws freely whatever the limits are."""

    def sample(self, request):
        return super().sample(replace(request, limits=None))


class Miscounting(TreeChain):
    def enumerate_rows(self, person, *, n_changes, **limits):
        return super().enumerate_rows(person, n_changes=n_changes + 1, **limits)


class Unlikely(TreeChain):
    def log_likelihood(self, rows, *, decision=True):
        return np.full(len(rows), -np.inf)


class Undefined(TreeChain):
    def log_likelihood(self, rows, *, decision=True):
        return np.full(len(rows), np.nan)


class Disorderly(TreeChain):
    @property
    def visit_order_(self):
        return super().visit_order_[1:]

    capabilities = Capabilities(visit_order=True)

    def log_likelihood(self, rows, *, decision=True): ...


class Amnesiac(TreeChain):
    def to_arrays(self):
        return {"nothing": None}


class Unwritable(TreeChain):
    def to_arrays(self):
        return {"when": object()}


def test_a_declared_capability_that_does_not_work_is_named():
    for generator, message in [
        (Loose(), "The capability limits, request.limits: expected codes inside"),
        (Miscounting(), "The capability enumeration, rows with 1 changes"),
        (Unlikely(), "The capability density, log_likelihood of draws: expected finite"),
        (Undefined(), "The capability density, log_likelihood: expected no NaN"),
        (Disorderly(), "The capability visit_order"),
        (Amnesiac(), "The capability saving"),
        (Unwritable(), "The capability saving.*model/when"),
    ]:
        with pytest.raises(AssertionError, match=message):
            check_generator(generator)
