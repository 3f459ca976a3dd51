"""Computing elsewhere: on torch's meta device, which every machine has, nothing is left on the CPU.

Tensors of two devices cannot be mixed, so a part that forgets its device fails here.
"""

from __future__ import annotations

import numpy as np
import pytest

from gradients import credit, quick
from loans import IMMUTABLE, loans
from mcce.baselines.deep.autoencoder import AutoEncoder, AutoEncoderSettings
from mcce.baselines.deep.clue import Converging
from mcce.baselines.deep.clue_model import ResidualSettings, ResidualVAE
from mcce.baselines.deep.csvae import SubspaceSettings, SubspaceVAE
from mcce.baselines.deep.descent import Patient, Step
from mcce.baselines.deep.projection import Projection
from mcce.baselines.deep.proximal import Bisection, Kept
from mcce.baselines.deep.scoring import Scorer
from mcce.baselines.deep.tools import blocks
from mcce.baselines.deep.training import TrainingPlan
from mcce.baselines.deep.vae import ConditionalVAE, VAESettings
from mcce.baselines.space import Space
from mcce.tables.schema import Schema

torch = pytest.importorskip("torch", reason="torch is not installed")

ELSEWHERE = "meta"
PLAN = TrainingPlan(1, 32, early_stopping=False, device=ELSEWHERE)
ROWS = Schema.learn_rows(loans(), immutable=IMMUTABLE)
SPACE = Space.learn(ROWS)


def nowhere(n_rows, n_columns):
    return torch.empty(n_rows, n_columns, dtype=torch.float64, device=ELSEWHERE)


def is_elsewhere(*tensors):
    return all(tensor.device.type == ELSEWHERE for tensor in tensors)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (ConditionalVAE, VAESettings((8,), 3, 0.1, PLAN)),
        (ResidualVAE, ResidualSettings(8, 2, 3, PLAN)),
    ],
)
def test_an_auto_encoder_is_trained_and_used_where_it_should_be(kind, settings):
    own = nowhere(5, SPACE.n_axes)

    vae = kind.fit(SPACE, SPACE.encode(ROWS), settings, seed=0)

    code = vae.encode(own)[0]
    assert is_elsewhere(*vae.network.parameters(), code, vae.decode(code, own))


def test_both_codes_of_cruds_are_trained_and_used_where_they_should_be():
    own, settings = nowhere(5, SPACE.n_axes), SubspaceSettings(8, 3, 2, PLAN)
    accepted = np.arange(len(ROWS)) % 2 == 0

    vae = SubspaceVAE.fit(SPACE, SPACE.encode(ROWS), accepted, settings, seed=0)

    decoded = vae.decode(vae.encode(own)[0], vae.prior(nowhere(5, 2))[0], own)
    assert is_elsewhere(*vae.network.parameters(), decoded)


def test_the_auto_encoder_of_cem_is_trained_where_it_should_be():
    trained = AutoEncoder.fit(SPACE, SPACE.encode(ROWS), AutoEncoderSettings((8, 4), PLAN), seed=0)

    assert is_elsewhere(trained.reproduce(nowhere(5, SPACE.n_axes)))


@pytest.mark.parametrize("desired", [(0.5, 1.0), (0.0, 0.4)])
def test_points_are_projected_and_scored_where_they_are(desired):
    training = quick("Wachter", credit(), desired).fit(loans()).training_
    scorer, projection = (
        Scorer.learn(training, SPACE, "", ELSEWHERE),
        Projection.of(SPACE, ELSEWHERE),
    )
    own = nowhere(5, SPACE.n_axes)

    rows = projection(own, own)
    outputs = scorer.outputs(rows, scorer.anchors(own, nowhere(5, scorer.slopes.shape[1])))

    judged = scorer.loss(outputs), scorer.margin(outputs), scorer.valid(outputs)
    assert is_elsewhere(rows, outputs, *judged, projection.l1(rows, own))


@pytest.mark.parametrize("make", [lambda own: Patient(own, 3), Converging, Kept])
def test_what_is_remembered_stays_where_the_people_are(make):
    own = nowhere(5, 2)
    best = make(own)

    best.update(Step(own[:, 0], own, own[:, 0] > 0, own[:, 1]))

    assert is_elsewhere(*(tensor for _, tensor in best._tensors()), best.stopped)


def test_constants_and_blocks_stay_where_the_people_are():
    bisection = Bisection(5, 10.0, ELSEWHERE)

    bisection.narrow(nowhere(5, 1)[:, 0] > 0)

    pairs = blocks(torch.arange(300, device=ELSEWHERE))
    assert is_elsewhere(bisection.constant, *(tensor for pair in pairs for tensor in pair))
