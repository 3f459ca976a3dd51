"""Rules in TOML files: the same as in Python, errors that point to the line, and hostile files."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import MCCE, ConstraintError, load
from mcce import constraints as c

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

TOML = """\
# Written by those who know the customers.
[[rules]]
only_up = "age"
[[rules]]
only_down = ["years", "salary"]
[[rules]]
not_up = {feature = "education"}
[[rules]]
only_up = {feature = "housing", order = ["boat", "rent", "free", "own"]}
[[rules]]
between = {feature = "salary", low = 10, high = 80}
[[rules]]
change = {feature = "salary", at_most = "20 %"}
[[rules]]
levels = {feature = "housing", allowed = ["rent", "own", {missing = true}]}
[[rules]]
transitions = {feature = "housing", allowed = {rent = ["own"], boat = [{missing = true}, "own"]}}
[[rules]]
[rules.transitions]
feature = "housing"
allowed = [{from = {missing = true}, to = ["rent"]}, {from = "rent", to = ["own"]}]
[[rules]]
never_advise = {feature = "housing", levels = ["boat", {missing = true}]}
[[rules]]
discouraged = {feature = "salary", direction = "up"}
[[rules]]
frozen = ["housing"]
[[rules]]
frozen = {features = ["age", "years"], where = "age > 60"}
[[rules]]
max_changes = 3
[[rules]]
max_changes = {n = 1, features = ["age", "years"]}
[[rules]]
together = ["salary", "years"]
[[rules]]
relation = {name = "works from 16 on", holds = "years <= age - 16"}
[[rules]]
derived = {feature = "years", formula = "age - 16", tolerance = 40}
[[rules]]
weight = {feature = "age", weight = 2}
[[rules]]
step = {feature = "salary", step = 0.5}
"""
IN_PYTHON = [
    c.only_up("age"),
    c.only_down("years"),
    c.only_down("salary"),
    c.not_up("education"),
    c.only_up("housing", order=["boat", "rent", "free", "own"]),
    c.between("salary", 10, 80),
    c.change("salary", at_most="20 %"),
    c.levels("housing", ["rent", "own", None]),
    c.transitions("housing", {"rent": ["own"], "boat": [None, "own"]}),
    c.transitions("housing", {None: ["rent"], "rent": ["own"]}),
    c.never_advise("housing", ["boat", None]),
    c.discouraged("salary", direction="up"),
    c.frozen("housing"),
    c.frozen("age", "years", where="age > 60"),
    c.max_changes(3),
    c.max_changes(1, ["age", "years"]),
    c.together("salary", "years"),
    c.relation("works from 16 on", "years <= age - 16"),
    c.derived("years", "age - 16", tolerance=40),
    c.weight("age", 2),
    c.step("salary", 0.5),
]


@pytest.fixture(scope="module")
def explainer():
    return MCCE(score, (0.8, 10), immutable=["sex"], n_samples=30, random_state=0).fit(bank(200))


@pytest.fixture
def use(explainer, tmp_path):
    """Explain under the rules in a text, or in bytes."""

    def use(content, name="rules.toml"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return explainer.explain(bank(5, seed=1), constraints=path)

    return use


def test_a_file_means_the_same_as_python(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(TOML)
    explainer = MCCE(score, (0.8, 10), immutable=["sex"], constraints=str(path), random_state=0)
    explainer.set_params(n_samples=30).fit(bank(200))
    explainer.save(tmp_path / "bank.mcce")
    path.unlink()

    saved = load(tmp_path / "bank.mcce", score)

    assert saved.constraints == IN_PYTHON
    people = bank(30, seed=1)
    explainer.set_params(constraints=IN_PYTHON)
    pd.testing.assert_frame_equal(saved.explain(people).frame, explainer.explain(people).frame)


WRONG = {
    "word": ('[[rules]]\nonly_up = "age"\n\n[[rules]]\nonli_up = "age"\n', "line 5.*'only_up'"),
    "key": ('[[rules]]\n[rules.between]\nfeature = "age"\nlo = 3\n', "line 2.*no argument 'lo'"),
    "inline list": ('rules = [\n{only_up = "age"},\n{onli_up = "age"}]\n', "rule 2: .*'only_up'"),
    "time": ("[[rules]]\nonly_up = 07:32:00\n", "line 2.*07:32:00 is no column"),
    "missing key": ("[[rules]]\nbetween = {low = 3}\n", "line 2.*feature"),
    "two words": ('[[rules]]\nonly_up = "age"\nonly_down = "age"\n', "name of one constraint"),
    "column": ('[[rules]]\nonly_up = "agge"\n', "line 2.*'age'"),
    "level": (
        '[[rules]]\nlevels = {feature = "housing", allowed = ["castle"]}\n',
        "line 2.*castle",
    ),
    "not missing": (
        '[[rules]]\nlevels = {feature = "housing", allowed = [{missing = false}]}\n',
        "line 2.*plain values",
    ),
    "no from": (
        '[[rules]]\ntransitions = {feature = "housing", allowed = ["own"]}\n',
        "line 2.*from = .*got 'own'",
    ),
    "from twice": (
        '[[rules]]\n[rules.transitions]\nfeature = "housing"\n'
        "allowed = [{from = 'own', to = ['rent']}, {from = 'own', to = ['boat']}]",
        "line 2.*'own' occurs twice",
    ),
    "from a list": (
        '[[rules]]\ntransitions = {feature = "housing", allowed = [{from = ["own"], to = []}]}\n',
        "line 2.*plain values",
    ),
    "condition": ('[[rules]]\nfrozen = {features = ["age"], where = "agee > 6"}\n', "line 2"),
    "text for a list": ('[[rules]]\nfrozen = {features = "age"}\n', "line 2.*list"),
    "no list": ("rules = 3\n", "one list called rules"),
    "another table": ("[[derived]]\nfeature = 'total'\n", r"'\[\[rules\]\]' with 'only_up"),
    "nothing": ("", "one list called rules"),
    "no TOML": ("rules = [", "not valid TOML"),
    "lists": (f"rules = {'[' * 50_000}", "inside each other"),
    "tables": (f"rules = {'{a=' * 50_000}", "inside each other"),
    "dotted keys": (f"{'.'.join('a' * 20_000)} = 1", "dotted name .* 20 parts"),
    "dotted header": (f"[{' . '.join('a' * 20_000)}]", "dotted name .* 20 parts"),
    "quoted keys": ('"\\"".a.' * 30_000 + "b = 1", "dotted name .* 20 parts"),
    "escapes": (
        '[[rules]]\nonly_up = "age"\n# "' + '\\"' * 100_000 + "\nx = 1",
        "one entry|one rule|x",
    ),
    "no end": ('a = """' + '\\"' * 100_000, "last long string begins on line 1"),
    "long text": (f"[[rules]]\nonly_up = '{'x' * 4001}'", "has 4001 characters"),
    "digits": (f"[[rules]]\nmax_changes = {'9' * 5000}", "5000 digits"),
    "hexadecimal": (f"[[rules]]\nmax_changes = 0x{'f' * 5000}", "may have 64 bits"),
    "long key": (f"[[rules]]\n{'a' * 200_000} = 1", "200000 characters"),
    "long file": ("#" * 12_000_000, "250000 bytes"),
    "many rules": ('[[rules]]\nonly_up = "age"\n' * 1001, "1000 rules"),
    "many features": ("[[rules]]\nonly_up = [" + "'age', " * 1001 + "]", "1000 rules"),
    "many values": (f"rules = [{'1, ' * 20_000}]", "10000 keys and values"),
    "half a character": ('[[rules]]\nonly_up = "\\ud800"', "not valid TOML"),
    "NUL": ("rules = '\0'", "not valid TOML"),
    "code": ("[[rules]]\nrelation = {name = 'x', holds = \"__import__('os')\"}", "line 2.*calls"),
    "many terms": (
        "".join(
            f"[[rules]]\nrelation = {{name = '{at}', holds = '{'age+' * 900}age > 1'}}\n"
            for at in range(9)
        ),
        "line 12: .* 10000 columns, values",
    ),
    "deep condition": (
        f"[[rules]]\nfrozen = {{features = ['age'], where = '{'(' * 3000}age > 1'}}",
        "line 2.*nests",
    ),
    "no text": (b"\xff\xfe\x00", "cannot be read"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_or_hostile_file_is_refused_in_a_few_words(use, name):
    content, message = WRONG[name]

    with pytest.raises(ConstraintError, match=message) as caught:
        use(content)

    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name here")
def test_only_regular_files_with_a_known_ending_are_read(explainer, use, tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "device.toml").symlink_to("/dev/zero")
    for name in ("pipe.toml", "folder.toml", "device.toml", "absent.toml"):
        with pytest.raises(ConstraintError, match="cannot be read"):
            explainer.explain(bank(5), constraints=tmp_path / name)
    for name in ("rules.txt", "rules.yaml"):
        with pytest.raises(ConstraintError, match=r"must be called \.toml"):
            use(TOML, name)


def test_a_path_that_is_none_is_quoted_in_a_few_words(explainer):
    for path in ("a" * 10**7 + ".toml", "\0.toml", "\ud800.toml", "a\n" * 999):
        with pytest.raises(ConstraintError) as caught:
            explainer.explain(bank(5), constraints=path)

        assert len(str(caught.value)) < 300
        assert str(caught.value).isprintable()


def test_lines_are_those_of_the_file(use):
    texts = {
        "comment": f'# {"a-" * 100_000}\n[[rules]]\nonly_up = "agge"\n',
        "multi-line text": '[[rules]]\nrelation = {name = """\n[[rules]]\n""", holds = "age > 1"}\n'
        "\n[[ rules ]] # next\n'only_up' = 'agge'\n",
        "windows": "\N{BYTE ORDER MARK}[[rules]]\r\nonly_up = 'agge'\r\n",
    }
    for name, line in {"comment": 3, "multi-line text": 7, "windows": 2}.items():
        with pytest.raises(ConstraintError, match=rf"rules\.toml, line {line}\b"):
            use(texts[name])


def test_a_damaged_file_is_refused_or_read_but_never_anything_else(use):
    chance = np.random.default_rng(1)
    outcomes = set()
    for _ in range(60):
        damaged = bytearray(TOML.encode())
        for place in chance.integers(len(damaged) - 6, size=chance.integers(1, 6)):
            if chance.random() < 0.3:
                del damaged[place]
            else:
                damaged[place] = chance.integers(1, 256)
        try:
            use(bytes(damaged))
            outcomes.add("read")
        except ConstraintError as error:
            outcomes.add("refused" if "rules.toml" in str(error) else str(error))

    assert outcomes == {"read", "refused"}
