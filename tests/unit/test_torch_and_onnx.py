"""torch modules and ONNX sessions: what goes in, and what must be said of what comes out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from loans import explain, loans, numbers
from mcce import MCCE, McceWarning, ParameterError, PredictorError
from mcce.predictors import Onnx, Torch, make_decision


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


def test_a_subclass_of_a_library_s_type_is_known_too(torch):
    class Net(torch.nn.Module):
        def forward(self, given):
            return given

    with pytest.raises(PredictorError, match=r"torch module Net does not say.*predictors\.Torch"):
        make_decision(Net(), (0, 1))


@pytest.fixture
def net(torch):
    torch.manual_seed(0)
    return torch.nn.Linear(4, 2)


def test_the_output_of_a_module_must_be_stated_in_full(net):
    for settings, says in [
        ({"output": "labels"}, "output must be one of.*got 'labels'"),
        ({"output": "logits"}, 'output="logits" needs classes'),
        ({"output": "score", "classes": ["no", "yes"]}, 'but output is "score"'),
        ({"output": "logits", "classes": ["no"]}, "two or more different labels"),
    ]:
        with pytest.raises(ParameterError, match=says):
            Torch(net, **settings)


def test_output_that_cannot_mean_what_was_stated_is_an_error(net):
    for output, classes, says in [
        ("probabilities", ["no", "yes"], r"outside of 0 and 1 as probabilities.*logits"),
        ("logits", ["a", "b", "c"], "2 numbers per row, but classes names 3"),
        ("score", None, r"shape \(240,\).*got shape \(240, 2\)"),
    ]:
        wrapped = Torch(net, output=output, classes=classes)
        decision = make_decision(wrapped, (0.5, 1), score_class=classes and classes[0])
        with pytest.raises(PredictorError, match=says):
            decision.score(numbers())


def test_probabilities_that_do_not_add_up_are_an_error(torch, net):
    both = torch.nn.Sequential(net, torch.nn.Sigmoid())

    with pytest.raises(PredictorError, match="must add up to 1"):
        Torch(both, output="probabilities", classes=["no", "yes"]).predict_proba(numbers())


def test_one_logit_is_that_of_the_second_class(torch):
    net = torch.nn.Linear(4, 1)
    frame = numbers()

    wrapped = Torch(net, output="logits", classes=["no", "yes"])

    expected = torch.sigmoid(net(torch.tensor(frame.to_numpy(np.float32)))).detach().numpy()
    assert np.allclose(wrapped.predict_proba(frame)[:, 1], expected.ravel())
    assert (wrapped.predict(frame) == np.where(expected.ravel() > 0.5, "yes", "no")).all()
    huge = Torch(torch.nn.Identity(), output="logits", classes=["no", "yes"])
    assert huge.predict_proba(np.array([[-1e30], [1e30]])).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_module_is_called_in_its_own_precision(torch):
    net = torch.nn.Linear(4, 1).double()
    frame = numbers().assign(salary=1e8 + np.arange(len(numbers())))

    scores = Torch(net, output="score").predict(frame).ravel()

    expected = net(torch.tensor(frame.to_numpy(float))).detach().numpy().ravel()
    assert scores.tolist() == expected.tolist()


def test_columns_that_are_no_numbers_are_an_error_that_names_them(net):
    wrapped = Torch(net, output="logits", classes=["no", "yes"])

    with pytest.raises(PredictorError, match=r"\['sex', 'job'\] are not numeric. Pass encode="):
        make_decision(wrapped, "yes").score(loans(boxed=True))


def test_a_number_too_large_for_the_module_is_an_error(net):
    wrapped = Torch(net, output="logits", classes=["no", "yes"])

    with pytest.raises(PredictorError, match=r"too large for the module's torch\.float32"):
        wrapped.predict(numbers().assign(salary=1e300))


def test_missing_numbers_reach_a_module_as_nan_and_its_nan_is_refused(net):
    wrapped = Torch(net, output="logits", classes=["no", "yes"])

    with pytest.raises(PredictorError, match="masked for 1 of 240 rows, first at position 0"):
        make_decision(wrapped, "yes").score(numbers().assign(salary=[np.nan] + [1.0] * 239))


def test_a_predictor_that_rolls_dice_is_found_out(torch):
    frame = numbers()
    net = torch.nn.Sequential(torch.nn.Dropout(0.4), torch.nn.Linear(4, 1))
    net[1].weight.data = torch.tensor([[0.0, 0.0, 0.05, 0.1]])
    net[1].bias.data.zero_()
    net.train()
    torch.manual_seed(0)

    def dicing(frame):
        with torch.no_grad():
            return net(torch.tensor(frame.to_numpy(np.float32))).numpy()

    people = frame[frame["salary"] < 8].head(12)
    with pytest.warns(McceWarning, match="The predictor is unstable"):
        unstable = explain(dicing, (0.8, 10.0), frame, people)
    assert unstable.n_unstable > 0
    stable = explain(Torch(net, output="score"), (0.8, 10.0), frame, people)
    assert stable.n_unstable == 0
    assert net.training
    assert net[0].training


def test_a_module_with_several_outputs_is_an_error(torch):
    class Two(torch.nn.Module):
        def forward(self, given):
            return given, given

    with pytest.raises(PredictorError, match="must return one tensor, got tuple"):
        Torch(Two(), output="score").predict(numbers())


def session(*outputs, inputs=(("x", "FLOAT", [None, 1]),), node="Identity"):
    """A session whose every output repeats an input, one after the other."""
    reason = "onnx and onnxruntime are not both installed"
    onnx = pytest.importorskip("onnx", reason=reason)
    runtime = pytest.importorskip("onnxruntime", reason=reason)
    make, kinds = onnx.helper, onnx.TensorProto
    given = [make.make_tensor_value_info(n, getattr(kinds, k), s) for n, k, s in inputs]
    kind_of = {name: (kind, shape) for name, kind, shape in inputs}
    made = [
        make.make_tensor_value_info(f"out_{n}", getattr(kinds, kind_of[n][0]), kind_of[n][1])
        for n in outputs
    ]
    nodes = [make.make_node(node, [n], [f"out_{n}"]) for n in outputs]
    model = make.make_model(
        make.make_graph(nodes, "g", given, made),
        opset_imports=[make.make_opsetid("", 18)],
        ir_version=9,
    )
    return runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def test_a_session_with_one_number_per_row_just_works():
    frame = pd.DataFrame({"x": np.arange(20.0)})

    result = MCCE(session("x"), (10, 99), random_state=0).fit(frame).explain(frame.head(2))

    assert (result.frame["x"] >= 10).all()


@pytest.mark.parametrize("shape", [[None, 2], [None, None]])
def test_a_session_that_does_not_say_what_it_gives_is_an_error(shape):
    with pytest.raises(PredictorError, match=r"out_x.*predictors\.Onnx\(session"):
        make_decision(session("x", inputs=[("x", "FLOAT", shape)]), (0, 1))


TWO = (("x", "FLOAT", [None, 1]), ("y", "DOUBLE", [None]), ("s", "STRING", [None, 1]))


def test_a_session_with_several_outputs_needs_the_name_of_one():
    several = session("x", "y", "s", inputs=TWO)

    with pytest.raises(ParameterError, match=r"one of the session's outputs.*got None"):
        Onnx(several, output="score")
    with pytest.raises(ParameterError, match="got 'z'"):
        Onnx(several, output="score", name="z")
    rows = pd.DataFrame({"s": ["a", "b"], "y": [1, 2], "x": [0.5, None]})
    assert Onnx(several, output="score", name="out_y").predict(rows).tolist() == [1.0, 2.0]
    assert np.isnan(Onnx(several, output="score", name="out_x").predict(rows)[1])


def with_input(kind):
    inputs = (("x", "FLOAT", [None, 1]), ("s", kind, [None, 1]))
    return Onnx(session("x", "s", inputs=inputs), output="score", name="out_x")


def test_cells_that_an_input_cannot_hold_are_an_error():
    for kind, cells, says in [
        ("STRING", [1, 2], r"column 's' as tensor\(string\).*its values"),
        ("STRING", ["a", None], "hold its missing values"),
        ("INT64", [1.5, 2.0], r"tensor\(int64\).*its values"),
        ("INT64", [1.0, None], "hold its missing values"),
        ("INT64", ["1", "2"], "its values"),
        ("FLOAT", ["1", "2"], "its values"),
        ("BOOL", [0, 2], "its values"),
    ]:
        with pytest.raises(PredictorError, match=says):
            with_input(kind).predict(pd.DataFrame({"x": [1.0, 2.0], "s": cells}))


def test_cells_that_an_input_holds_exactly_go_in():
    for kind, cells in [
        ("STRING", pd.Categorical(["a", "b"])),
        ("INT64", [1.0, 2.0]),
        ("INT64", [True, False]),
        ("BOOL", [0, 1]),
        ("DOUBLE", pd.array([1, None], "Int64")),
    ]:
        rows = pd.DataFrame({"x": [1.0, 2.0], "s": cells})
        assert with_input(kind).predict(rows).ravel().tolist() == [1, 2]


def test_columns_that_are_not_those_of_the_session_are_named():
    wrapped = Onnx(session("x", "y", "s", inputs=TWO), output="score", name="out_x")

    with pytest.raises(PredictorError, match=r"takes the columns \['x', 'y', 's'\].*got \['x'\]"):
        wrapped.predict(pd.DataFrame({"x": [1.0]}))


def test_labels_of_a_session_that_classes_does_not_name_are_an_error():
    inputs = (("p", "FLOAT", [None, 1]), ("s", "STRING", [None]))
    wrapped = Onnx(session("p", "s", inputs=inputs), output="probabilities", classes=[0, 1])
    rows = pd.DataFrame({"p": [0.2, 0.9], "s": ["no", "yes"]})

    assert wrapped.predict_proba(rows)[:, 1].tolist() == pytest.approx([0.2, 0.9])
    with pytest.raises(PredictorError, match=r"classes=\[0, 1\]: 'no', 'yes' are only in one"):
        wrapped.predict(rows)
