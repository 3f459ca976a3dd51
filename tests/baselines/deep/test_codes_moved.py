"""C-CHVAE, REViSE, CLUE and CRUDS, which move a code, with auto-encoders one can see through."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradients import Identity, Logistic, block_of, explain, line, quick, step_at
from loans import loans
from mcce.baselines.deep.cchvae import draw_ring
from mcce.baselines.deep.clue import Converging, entropy
from mcce.baselines.deep.descent import Step

torch = pytest.importorskip("torch", reason="torch is not installed")

TINY = {"n_epochs": 1, "n_latent": 1}


def seen_through(name, predictor, frame, **settings):
    """A fitted method whose code is the row itself."""
    explainer = quick(name, predictor, **{**TINY, **settings}).fit(frame)
    explainer.vae_ = Identity(explainer.vae_.layout)
    return explainer


@given(
    ring=st.integers(0, 50),
    n_latent=st.integers(1, 9),
    step=st.floats(0.01, 2.0),
    norm=st.sampled_from([1, 2]),
    seed=st.integers(0, 2**32),
)
def test_steps_of_a_ring_have_the_lengths_of_the_ring(ring, n_latent, step, norm, seed):
    steps = draw_ring(np.random.default_rng(seed), ring, 50, n_latent, step, norm)

    length = np.linalg.norm(steps, ord=norm, axis=1)
    assert steps.shape == (50, n_latent)
    assert (length >= ring * step * (1 - 1e-9)).all()
    assert (length <= (ring + 1) * step * (1 + 1e-9)).all()


def crowd(n_people):
    """People at the left end, who differ in what cannot change, and rows all along the line."""
    rows = line().assign(who=0)
    return rows, pd.DataFrame({"x": 0.0, "who": np.arange(1, n_people + 1)})


def rings(n_samples, frame, bias=0.35):
    predictor = Logistic({"x": 10.0, "who": 0.0}, -10.0 * bias - 1e-9)
    return seen_through(
        "CCHVAE", predictor, frame, immutable=["who"], n_samples=n_samples, step=0.1
    )


def test_the_first_ring_with_a_valid_row_ends_the_search():
    frame, people = crowd(20)

    result = rings(300, frame).explain(people)

    assert ((result.frame["x"] > 0.35) & (result.frame["x"] <= 0.4)).all()
    assert result.n_evaluated == 20 * 300 * 4


def test_more_codes_per_ring_never_lead_further_on_average():
    frame, people = crowd(200)

    means = [rings(n, frame).explain(people).frame["x"].mean() for n in (5, 10, 20, 40)]

    assert means == sorted(means, reverse=True)
    assert means[-1] < means[0]


def test_nothing_valid_ends_after_the_last_ring():
    frame, people = crowd(3)
    frame.loc[0, "who"] = 9  # somebody is accepted, for what cannot change
    predictor = Logistic({"x": 0.0, "who": 1.0}, -8.0)
    explainer = seen_through("CCHVAE", predictor, frame, immutable=["who"], n_samples=10, n_rings=7)

    result = explain(explainer, people)

    assert (result.people["reason"] == "no ring around the person's code has a valid row").all()
    assert result.n_evaluated == 3 * 10 * 7


@cache
def revise(weight, rate=0.01, n_steps=300):
    settings = {"weight": weight, "learning_rate": rate, "n_steps": n_steps}
    return seen_through("REViSE", step_at(0.6), line(), **settings)


@pytest.mark.parametrize("weight", [0.0, 0.5])
@given(at=st.integers(1, 999))
def test_the_gradient_of_revise_is_the_analytic_one(weight, at):
    block, place = block_of(revise(weight), pd.DataFrame({"x": [0.2]})), at / 1000
    codes = torch.tensor([[place]], dtype=torch.float64, requires_grad=True)

    step = revise(weight)._objective(block, codes)
    (gradient,) = torch.autograd.grad(step.value.sum(), codes)

    f = 1 / (1 + np.exp(-10 * (place - 0.6)))
    expected = -10 * (1 - f) + weight * np.sign(round(place - 0.2, 9))
    assert float(gradient) == pytest.approx(expected, abs=1e-5)
    value = -np.log(f) + weight * abs(place - 0.2)
    assert float(step.value.detach()) == pytest.approx(value, abs=1e-6)


def test_revise_without_a_weight_of_distance_goes_to_the_end():
    (answer,) = revise(0.0).explain(pd.DataFrame({"x": [0.2]})).frame["x"]

    assert answer > 0.9


def test_revise_weighs_distance_against_the_decision():
    (answer,) = revise(4.5).explain(pd.DataFrame({"x": [0.5]})).frame["x"]

    # 10 s(-10 (e - b)) = 4.5
    assert answer == pytest.approx(0.6 + np.log(10 / 4.5 - 1) / 10, abs=0.01)


def test_revise_has_no_answer_if_nothing_but_the_distance_counts():
    assert len(explain(revise(1000.0), pd.DataFrame({"x": [0.2]})).frame) == 0


def test_entropy_is_that_of_shares_in_nats():
    outputs = torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.9, 0.1]], dtype=torch.float64)

    assert entropy(outputs).tolist() == pytest.approx([np.log(2), 0.0, 0.3250829733914482])


@given(path=st.lists(st.floats(0, 1), min_size=1, max_size=15))
def test_clue_stops_where_the_objective_has_hardly_changed_over_three_steps(path):
    best = Converging(torch.zeros(1, 1, dtype=torch.float64))
    stopped = []
    for time, value in enumerate(path):
        number = torch.tensor([value], dtype=torch.float64)
        # Later rows are cheaper, so what is remembered is the last one before the stop.
        best.update(
            Step(number, torch.full((1, 1), time + 1.0), torch.tensor([True]), -number * 0 - time)
        )
        stopped.append(bool(best.stopped))

    limit = max(0.01 * path[0], 1e-3)
    still = [t for t in range(4, len(path)) if abs(path[t] - path[t - 3]) < limit]
    first = min(still, default=len(path))
    assert stopped == [time >= first for time in range(len(path))]
    assert float(best.points) == min(first, len(path) - 1) + 1


def test_clue_becomes_certain_of_no_unless_the_decision_has_a_weight():
    person = pd.DataFrame({"x": [0.45]})
    settings = {"weight": 0.01, "learning_rate": 0.02}
    own = seen_through("CLUE", step_at(0.5, 8.0), line(), desired_weight=0.0, **settings)
    wanting = seen_through("CLUE", step_at(0.5, 8.0), line(), desired_weight=1.0, **settings)

    nothing, answer = explain(own, person), wanting.explain(person)

    assert len(nothing.frame) == 0
    assert nothing.people["reason"].tolist() == [
        "the decision never changed while the predictor became more certain"
    ]
    assert answer.frame["x"].iloc[0] >= 0.5


class Shifted(Identity):
    """Two codes: z is ignored, and the first number of w is the row."""

    def prior(self, decisions):
        zeros = torch.zeros(len(decisions), 2, dtype=torch.float64)
        return zeros + 0.2, zeros

    def decode(self, z, w, own):
        return self.layout.place(w[:, :1].clamp(0, 1), own)


def cruds(weight):
    explainer = quick("CRUDS", step_at(0.6), weight=weight, n_steps=100).fit(line())
    explainer.vae_ = Shifted(explainer.vae_.layout)
    return explainer


def test_cruds_moves_the_code_of_the_decision_across_the_boundary():
    person = pd.DataFrame({"x": [0.2]})

    near, far = (cruds(weight).explain(person).frame["x"].iloc[0] for weight in (3.0, 0.0))

    assert 0.6 <= near < far <= 1.0


def test_the_adversary_of_cruds_cannot_tell_the_decision():
    frame = loans()[["salary", "owns", "job"]]
    predictor = Logistic({"salary": 1.0}, -11.0)
    explainer = quick("CRUDS", predictor, n_epochs=15).fit(frame)
    points = torch.tensor(explainer.scorer_.space.encode(explainer.training_.rows))

    with torch.no_grad():
        z = explainer.vae_.encode(points)[0]
        guess = explainer.vae_.guess(z, points).argmax(dim=1).numpy()

    accepted = explainer.training_.scored.valid
    assert (guess == accepted).mean() < max(accepted.mean(), 1 - accepted.mean()) + 0.15
