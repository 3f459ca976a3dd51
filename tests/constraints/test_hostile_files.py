"""Rule files that would hang, crash or exhaust a careless reader are refused in a few words."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bank import bank
from mcce import ConstraintError, Schema
from mcce.constraints import bounds
from mcce.constraints.collection import Constraints
from mcce.constraints.files import read_constraints

pytest.importorskip("yaml", reason="YAML files need PyYAML")

FUZZ = Path(__file__).parents[1] / "fuzz"


@pytest.fixture(autouse=True)
def limited():
    """End a test that takes or waits far too long."""
    if not hasattr(signal, "SIGPROF"):
        pytest.skip("needs the timers of POSIX")
    before = signal.signal(signal.SIGPROF, _too_long), signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_PROF, 60)
    signal.alarm(300)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.alarm(0)
    signal.signal(signal.SIGPROF, before[0])
    signal.signal(signal.SIGALRM, before[1])


def _too_long(*_):
    raise TimeoutError


def aliases(depth):
    lines = ["rules:", "- &a0 [age, age, age, age, age, age, age, age, age]"]
    lines += [f"- &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]" for at in range(1, depth)]
    return "\n".join([*lines, f"- frozen: *a{depth - 1}"])


HOSTILE = {
    "aliases nine deep": ("a.yaml", aliases(9), "10000 keys and values"),
    "an alias of itself": ("a.yaml", "rules: &a [*a]", "inside what it stands for"),
    "an alias of a mapping in itself": ("a.yaml", "rules:\n- &a {only_up: *a}", "inside what"),
    "an alias of nothing": ("a.yaml", "rules:\n- only_up: *b", "no anchor"),
    "many aliases": ("a.yaml", "rules:\n- &a x\n" + "- *a\n" * 101, "100 aliases"),
    "merge keys": ("a.yaml", "rules:\n- &a {only_up: age}\n- {<<: *a}", "merge key"),
    "deep lists in YAML": ("a.yaml", f"rules: {'[' * 50_000}", "inside each other"),
    "deep mappings in YAML": ("a.yaml", f"rules: {'{a: ' * 50_000}", "inside each other"),
    "deep blocks in YAML": ("a.yaml", f"rules:\n{'- ' * 50_000}x", "inside each other"),
    "deep lists in TOML": ("a.toml", f"rules = {'[' * 50_000}", "inside each other"),
    "deep tables in TOML": ("a.toml", f"rules = {'{a=' * 50_000}", "inside each other"),
    "dotted keys": ("a.toml", f"{'.'.join('a' * 20_000)} = 1", "inside each other"),
    "a dotted header": ("a.toml", f"[{' . '.join('a' * 20_000)}]", "inside each other"),
    "digits in YAML": ("a.yaml", f"rules:\n- max_changes: {'9' * 5000}", "5000 characters"),
    "fewer digits in YAML": ("a.yaml", f"rules:\n- max_changes: {'9' * 200}", "200 characters"),
    "digits in TOML": ("a.toml", f"[[rules]]\nmax_changes = {'9' * 5000}", "5000 characters"),
    "minutes and seconds": ("a.yaml", f"rules:\n- step: 1{':59' * 500}", "1501 characters"),
    "a huge name": ("a.yaml", f"rules:\n- only_up: {'a' * 200_000}", "200000 characters"),
    "a huge key": ("a.toml", f"[[rules]]\n{'a' * 200_000} = 1", "200000 characters"),
    "a huge file": ("a.yaml", "#" * 12_000_000, "250000 bytes"),
    "many rules": ("a.yaml", "rules:\n" + "- only_up: age\n" * 1001, "1000 rules"),
    "many features": ("a.yaml", f"rules:\n- only_up: [{'age, ' * 1001}]", "1000 rules"),
    "many values in YAML": ("a.yaml", f"rules: [{'1, ' * 20_000}]", "10000 keys and values"),
    "many values in TOML": ("a.toml", f"rules = [{'1, ' * 20_000}]", "10000 keys and values"),
    "a tag that runs code": ("a.yaml", "rules: !!python/object/apply:os.getcwd []", "tag"),
    "a tag of its own": ("a.yaml", "rules:\n- only_up: !own age", "tag"),
    "binary": ("a.yaml", "rules:\n- only_up: !!binary aGk=", "tag"),
    "a set": ("a.yaml", "rules:\n- levels: {feature: housing, allowed: !!set {own}}", "tag"),
    "a wrong boolean": ("a.yaml", "rules:\n- only_up: !!bool age", "type bool"),
    "a wrong date": ("a.yaml", "rules:\n- between: {feature: age, low: 2024-13-45}", "timestamp"),
    "half a character": ("a.yaml", 'rules:\n- only_up: "\\ud800"', "half a character"),
    "half a character in TOML": ("a.toml", '[[rules]]\nonly_up = "\\ud800"', "not valid TOML"),
    "a list as a key": ("a.yaml", "rules:\n- {[a]: age}", "plain value"),
    "keys that are equal": ("a.yaml", "rules:\n- {1: a, true: b}", "twice"),
    "two documents": ("a.yaml", "rules: []\n---\nrules: []", "one document"),
    "NUL in YAML": ("a.yaml", "rules: \0", "not valid YAML"),
    "NUL in TOML": ("a.toml", "rules = '\0'", "not valid TOML"),
    "a long condition": ("a.yaml", f"rules:\n- frozen: {{where: '{'(' * 5000}'}}", "5000 char"),
    "a deep condition": (
        "a.yaml",
        f"rules:\n- frozen: {{features: [age], where: '{'(' * 3000}'}}",
        "parentheses",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_a_few_words(tmp_path, name):
    file, text, message = HOSTILE[name]
    path = tmp_path / file
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ConstraintError, match=message) as caught:
        read_constraints(path)

    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("word", ["a", "a-", "a ", "a=", "'", "["])
def test_a_long_comment_is_read_in_time(tmp_path, word):
    path = tmp_path / "rules.toml"
    path.write_text(f'# {word * 100_000}\n[[rules]]\nonly_up = "age"\n')

    (rule,) = read_constraints(path)

    assert rule.source == "rules.toml, line 3"


@pytest.mark.parametrize("name", ["rules.yaml", "rules.toml"])
def test_only_regular_files_are_read(tmp_path, name):
    os.mkfifo(tmp_path / name)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / name).mkdir()
    (tmp_path / "device").mkdir()
    (tmp_path / "device" / name).symlink_to("/dev/zero")

    for path in (tmp_path / name, tmp_path / "folder" / name, tmp_path / "device" / name):
        with pytest.raises(ConstraintError, match="cannot be read"):
            read_constraints(path)


@pytest.mark.parametrize("path", ["a" * 10**7 + ".toml", "\0.toml", "\ud800.yaml", "a\n" * 999])
def test_a_path_that_is_none_is_quoted_in_a_few_words(path):
    with pytest.raises(ConstraintError) as caught:
        Constraints.bind(path, Schema.learn(bank(50)))

    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


def test_what_is_within_the_bounds_is_read(tmp_path):
    levels = ", ".join(f"level {at}" for at in range(9000))
    name = "a" * bounds.MAX_TEXT
    text = f"# {'é' * 50_000}\nrules:\n- &a {{levels: {{feature: {name}, allowed: [{levels}]}}}}\n"
    (tmp_path / "rules.yaml").write_text(text + "- frozen: &b [age, years]\n- together: *b\n")

    rules = read_constraints(tmp_path / "rules.yaml")

    assert [len(getattr(rule, "allowed", rule.features)) for rule in rules] == [9000, 2, 2]
    assert rules[2].source == "rules.yaml, line 5"


def test_text_that_looks_like_a_header_is_not_one(tmp_path):
    text = '[[rules]]\nrelation = {name = """\n[[rules]]\na = 1\n""", holds = "age > 1"}\n'
    (tmp_path / "rules.toml").write_text(text + "\n[[ rules ]] # next\n'only_up' = 'age'\n")

    assert [rule.source[-6:] for rule in read_constraints(tmp_path / "rules.toml")] == [
        "line 2",
        "line 8",
    ]


@pytest.mark.parametrize("name", ["rules.yaml", "rules.toml"])
def test_a_byte_order_mark_and_line_ends_of_windows_change_nothing(tmp_path, name):
    text = "rules:\r\n- only_up: age\r\n"
    text = text if name.endswith("yaml") else "[[rules]]\r\nonly_up = 'age'\r\n"
    (tmp_path / name).write_bytes(text.encode("utf-8-sig"))

    assert [rule.source for rule in read_constraints(tmp_path / name)] == [f"{name}, line 2"]


def test_no_message_lists_the_levels_of_the_training_data(tmp_path):
    schema = Schema.learn(bank(400))
    rules = [
        "levels: {feature: housing, allowed: [castle]}",
        "transitions: {feature: housing, allowed: {castle: [tent]}}",
        "only_up: housing",
        "only_up: {feature: housing, order: [castle]}",
        "only_up: {feature: housing, order: []}",
        "relation: {name: x, holds: housing > 3}",
    ]

    def use():
        bound = Constraints.bind(tmp_path / "rules.yaml", schema)
        return bound.listed[0].holds(bank(40), schema.adapter)

    for rule in rules:
        (tmp_path / "rules.yaml").write_text(f"rules:\n- {rule}\n")
        with pytest.raises(ConstraintError) as caught:
            use()

        assert not any(level in str(caught.value) for level in ("rent", "own", "free", "boat"))


@pytest.mark.skipif(sys.platform != "linux", reason="forks, and measures as Linux does")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_generated_files_and_conditions_stay_within_two_seconds_and_200_mb(seed):
    command = [sys.executable, FUZZ / "read_hostile_rules.py", f"--seed={seed}"]
    done = subprocess.run(
        [*command, "--files=50", "--conditions=50"], capture_output=True, text=True, check=False
    )

    summary = json.loads(done.stdout)

    assert summary["wrong"] == []
    assert summary["n"] == 100
    assert summary["n_refused"] > 50
    assert done.returncode == 0
