"""Rule files made to hang, crash or exhaust whatever reads them.

``hostile_files(seed, n)`` repeats with its seed; ``read_hostile_rules.py`` reads the files under
limits.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hostile_conditions import CONDITION_RECIPES, any_size

YAML_RULES = """\
rules:
  - only_up: age
  - change: {feature: salary, at_most: 20 %}
  - transitions: {feature: housing, allowed: {rent: [own], boat: [rent, own]}}
  - frozen: {features: [age, years], where: age > 60}
  - relation: {name: works from 16 on, holds: years <= age - 16}
"""
TOML_RULES = """\
[[rules]]
only_up = "age"
[[rules]]
change = {feature = "salary", at_most = "20 %"}
[[rules]]
transitions = {feature = "housing", allowed = {rent = ["own"], boat = ["rent", "own"]}}
[[rules]]
relation = {name = "works from 16 on", holds = "years <= age - 16"}
"""
ODD_SCALARS = (
    *("1e999", "-1e999", ".inf", "-.inf", ".nan", "0x" + "f" * 5000, "0b" + "1" * 9000, "1_000"),
    *(
        "2024-01-01",
        "2024-13-45",
        "0001-01-01",
        "9999-12-31T23:59:59Z",
        "2001-12-14t21:59:43.10-05",
    ),
    *("~", "yes", "=", "<<", "''", '"\\ud800"', '"\\x00"', "!!binary aGk=", "!!set {a, b}"),
    *("!!omap [a: 1]", "!!python/object/apply:os.getcwd []", "!!python/tuple [1]", "!own x"),
    *(
        "!!int x",
        "!!float x",
        "!!timestamp x",
        "!!bool x",
        "!!str 3",
        "1:" * 2000 + "1",
        "2024-02-30",
    ),
    *("1e-9999", "9" * 30, "-0", "0o777", "1__0", "[[]]", "{}", "{[a]: b}", "? x", "*nobody"),
)


@dataclass(frozen=True)
class HostileFile:
    """A file, or something that is not one."""

    name: str
    content: bytes = b""
    kind: str = "file"

    def write(self, folder: Path) -> Path:
        """Put it into a folder, or give the path of the device that it stands for."""
        path = folder / self.name
        if self.kind == "fifo":
            os.mkfifo(path)
        elif self.kind == "folder":
            path.mkdir()
        elif self.kind == "device":
            path.symlink_to("/dev/zero")
        elif self.kind == "dangling":
            path.symlink_to(path)
        else:
            path.write_bytes(self.content)
        return path


def hostile_files(seed: int, n: int) -> Iterator[HostileFile]:
    """The first ``n`` files of a seed: every recipe in turn, with other sizes each time."""
    for number in range(n):
        chance = random.Random(f"{seed} {number}")
        name, recipe = FILE_RECIPES[number % len(FILE_RECIPES)]
        made = recipe(chance)
        if isinstance(made, HostileFile):
            yield made
            continue
        content = made if isinstance(made, bytes) else made.encode("utf-8", "surrogatepass")
        yield HostileFile(name, content)


def _laughs(chance: random.Random) -> str:
    depth, width = chance.randint(2, 12), chance.randint(2, 12)
    lines = ["rules:", "- &a0 [age]"]
    for level in range(1, depth):
        lines.append(f"- &a{level} [{', '.join([f'*a{level - 1}'] * width)}]")
    return "\n".join([*lines, f"- frozen: *a{depth - 1}"])


def _merges(chance: random.Random) -> str:
    lines = ["base: &m0 {feature: age}"]
    for level in range(1, any_size(chance, 2000)):
        lines.append(f"b{level}: &m{level} {{<<: [{f'*m{level - 1}, ' * chance.randint(1, 9)}]}}")
    return "\n".join([*lines, "rules: []"])


def _recursive(chance: random.Random) -> str:
    return chance.choice(
        [
            "&a [*a]",
            "rules: &a [*a]",
            "rules:\n- &a {only_up: *a}",
            "rules:\n- &a {*a : age}",
            "&a {rules: [*a]}",
            "rules:\n- frozen: &a [age, *a]",
            "rules: &a\n- transitions: {feature: housing, allowed: {rent: *a}}",
        ]
    )


def _nested_yaml(chance: random.Random) -> str:
    depth = any_size(chance, 200_000)
    opening, closing = chance.choice([("[", "]"), ("{a: ", "}"), ("- ", ""), ("? ", ""), ("{", "")])
    return f"rules:{chance.choice([' ', chr(10)])}{opening * depth}x{closing * depth}"


def _nested_toml(chance: random.Random) -> str:
    depth = any_size(chance, 100_000)
    opening, closing = chance.choice([("[", "]"), ("{a=", "}"), ("[", ""), ("[{a=", "}]")])
    return f"rules = {opening * depth}1{closing * depth}"


def _dotted(chance: random.Random) -> str:
    n, key = any_size(chance, 100_000), chance.choice(["a", '"a"', "'a'", "'.'"])
    dots = chance.choice([".", " . "]).join([key] * n)
    made = [f"{dots} = 1", f"[{dots}]", f"[[{dots}]]", f"rules = [{{{dots} = 1}}]"]
    lines = "".join(f"a{i}.b{'.c' * (n // 500)} = 1\n" for i in range(any_size(chance, 5000)))
    return chance.choice([*made, f"[[rules]]\n{dots} = 'age'", lines])


def _many_tables(chance: random.Random) -> str:
    n = any_size(chance, 30_000)
    line = chance.choice(["[[rules]]\n", "[a{}]\n", "a{} = 1\n", "[a.b.c.d{}]\n", "[[rules.x]]\n"])
    return "".join(line.format(i) for i in range(n))


def _long_text(chance: random.Random) -> str:
    text = chance.choice(["a", "a ", "'", "\\", "é", "-", "a=", '"', "\\u0041", "a-", "\t", "[["])
    text *= any_size(chance, 1_500_000)
    made = [
        f"# {text}\n{TOML_RULES}",
        f"[[rules]]\nonly_up = '{text}'",
        f'[[rules]]\nonly_up = "{text}"',
        f'[[rules]]\nonly_up = """{text}"""',
        f"[[rules]]\n{text} = 'age'",
        f"[[rules]]\n'{text}' = 'age'",
        f"[[rules]]\nlevels = {{feature = 'housing', allowed = ['{text}']}}",
        f"[[rules]]\nrelation = {{name = '{text}', holds = 'age > 1'}}",
        f"[[rules]]\nrelation = {{name = 'x', holds = 'age > 1', '{text}' = 1}}",
        text,
    ]
    return chance.choice(made)


def _long_yaml(chance: random.Random) -> str:
    text = chance.choice(["a", "a ", "''", "é", "-", "a\n ", "\n", " ", "1", "\\\\", "a, ", "b: "])
    text *= any_size(chance, 1_500_000)
    made = [
        f"# {text}\n{YAML_RULES}",
        f"rules:\n- only_up: '{text}'",
        f'rules:\n- only_up: "{text}"',
        f"rules:\n- only_up: {text}",
        f"rules:\n- {text}: age",
        f"rules:\n- ? {text}\n  : age",
        f"rules:\n- only_up: |\n {text}",
        f"rules:\n- only_up: &{text} age",
        f"rules:\n- only_up: *{text}",
        f"rules:\n- !{text} age",
        f"%TAG ! {text}\n---\nrules: []",
        f"rules: [{text}]",
        f"rules:\n- levels: {{feature: housing, allowed: ['{text}']}}",
        f"rules:\n- between: {{feature: '{text}', low: 3}}",
        text,
    ]
    return chance.choice(made)


def _numbers(chance: random.Random) -> tuple[str, str]:
    number = chance.choice(["9", "1", "-1", "0x", "0b1", "1.", "1e", "1_0", ".1", "1:59", "+7"])
    number += chance.choice("019") * any_size(chance, 200_000)
    rule = chance.choice(["max_changes", "only_up", "together"])
    arguments = chance.choice(["weight", "step", "change", "between", "levels"])
    name = {"weight": "weight", "step": "step", "change": "at_most", "between": "low"}
    argument = name.get(arguments, "allowed")
    if chance.random() < 0.5:
        return f"{rule}: {number}", f"{rule} = {number}"
    feature = chance.choice(["age", "housing"])
    return (
        f"{arguments}: {{feature: {feature}, {argument}: {number}}}",
        f"{arguments} = {{feature = '{feature}', {argument} = {number}}}",
    )


def _number_yaml(chance: random.Random) -> str:
    return f"rules:\n- {_numbers(chance)[0]}"


def _number_toml(chance: random.Random) -> str:
    return f"[[rules]]\n{_numbers(chance)[1]}"


def _odd_yaml(chance: random.Random) -> str:
    odd = chance.choice(ODD_SCALARS)
    places = [
        "rules: {}",
        "{}: []",
        "rules:\n- {}",
        "rules:\n- only_up: {}",
        "rules:\n- {}: age",
        "rules:\n- levels: {{feature: housing, allowed: [{}]}}",
        "rules:\n- transitions: {{feature: housing, allowed: {{{}: [own]}}}}",
        "rules:\n- between: {{feature: age, low: {}}}",
        "rules:\n- change: {{feature: salary, at_most: {}}}",
        "rules:\n- max_changes: {}",
        "rules:\n- frozen: {{features: [age], where: {}}}",
        "rules:\n- relation: {{name: {}, holds: age > 1}}",
        "rules:\n- weight: {{feature: age, weight: {}}}",
        "rules:\n- step: {{feature: age, step: {}}}",
        "rules:\n- only_up: {{feature: housing, order: {}}}",
    ]
    return chance.choice(places).format(odd)


def _duplicates(chance: random.Random) -> str:
    n = any_size(chance, 20_000)
    return chance.choice(
        [
            "rules:\n- {1: a, true: b, 1.0: c}",
            "rules: []\n" * n,
            "rules:\n- {" + "only_up: age, " * n + "}",
            "[[rules]]\n" + "only_up = 'age'\n" * n,
            "rules:\n" + "- only_up: age\n" * n,
            "rules:\n- frozen: [" + "age, " * n + "]",
            "rules:\n- {? {a: 1} : 2}",
            "rules: []\n---\nrules: []\n" * n,
        ]
    )


def _bytes(chance: random.Random) -> bytes:
    plain = chance.choice([YAML_RULES, TOML_RULES])
    made = [
        plain.encode("utf-16"),
        plain.encode("utf-32"),
        plain.encode("utf-8-sig") * 2,
        b"\x00" * any_size(chance, 2_000_000),
        chance.randbytes(any_size(chance, 300_000)),
        plain.encode() + b"\x00",
        plain.encode().replace(b"age", b"a\xed\xa0\x80e"),
        plain.encode().replace(b"\n", b"\r"),
        plain.encode().replace(b"\n", b"\r\n"),
        plain.encode().replace(b"age", "a\u2028g\u0085e\ufeff".encode()),
        b"\xff\xfe" + plain.encode(),
        b"",
        b"\xef\xbb\xbf",
    ]
    return chance.choice(made)


def _damaged(chance: random.Random) -> bytes:
    damaged = bytearray(chance.choice([YAML_RULES, TOML_RULES]).encode())
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(damaged))
        if chance.random() < 0.3:
            del damaged[place]
        else:
            damaged[place] = chance.choice(b"{}[]&*!|>'\"%@`#,:-\n\t =.0\\") or 1
    return bytes(damaged)


def _not_a_file(chance: random.Random) -> HostileFile:
    ending = chance.choice([".yaml", ".toml"])
    kind = chance.choice(["fifo", "folder", "device", "dangling"])
    return HostileFile(f"{kind}{ending}", kind=kind)


def _json(chance: random.Random) -> str:
    depth = any_size(chance, 200_000)
    made = ["[" * depth, '{"a":' * depth, '{"rules": [' + "[" * depth + "]" * depth + "]}"]
    made += ['{"rules": [{"only_up": "age"}]}', '{"rules": [1e999, -0, "\\ud800"]}']
    return chance.choice(made)


def _condition_file(chance: random.Random) -> str:
    text = json.dumps(chance.choice(CONDITION_RECIPES)(chance))
    made = ["relation: {{name: x, holds: {}}}", "frozen: {{features: [age], where: {}}}"]
    return f"rules:\n- {chance.choice(made).format(text)}"


FILE_RECIPES: tuple[tuple[str, Callable[[random.Random], str | bytes | HostileFile]], ...] = (
    ("laughs.yaml", _laughs),
    ("merges.yaml", _merges),
    ("recursive.yaml", _recursive),
    ("nested.yaml", _nested_yaml),
    ("nested.toml", _nested_toml),
    ("dotted.toml", _dotted),
    ("tables.toml", _many_tables),
    ("long.toml", _long_text),
    ("long.yaml", _long_yaml),
    ("number.yaml", _number_yaml),
    ("number.toml", _number_toml),
    ("odd.yaml", _odd_yaml),
    ("duplicates.yaml", _duplicates),
    ("duplicates.toml", _duplicates),
    ("bytes.yaml", _bytes),
    ("bytes.toml", _bytes),
    ("damaged.yaml", _damaged),
    ("damaged.toml", _damaged),
    ("special", _not_a_file),
    ("json.yaml", _json),
    ("rules.json", _json),
    ("condition.yaml", _condition_file),
    ("conditions.yml", _condition_file),
)
