"""Diagrams of objects with hostile names are those of harmless ones, under other names.

The readers here are stricter than Mermaid and Graphviz: what they do not know fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import pytest

from claimctl.commands.tree import drawing
from claimctl.commands.tree.graph import CLAIM, DEVICE, NODE, POD, Graph, Vertex
from claimctl.text import visible
from tests.support.hostile import TEXT, forged_lines, obeyed, texts

SEEDS = range(30)
LABELS = ("makes", "uses", "has", "is on", "holds")


@dataclass(slots=True)
class Drawn:
    """What a reader finds in a diagram: the shape and the lines of each vertex, and the edges."""

    vertices: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    edges: list[tuple[str, str, str]] = field(default_factory=list)


MERMAID_VERTEX = re.compile(r'  (v\d+)(\W+)"((?:[\w ./,()-]|#\d+;|<br>)*)"(\W+)')
MERMAID_EDGE = re.compile(r"  (v\d+) -->\|([a-z ]+)\| (v\d+)")


def read_mermaid(text: str) -> Drawn:
    first, *lines = text.split("\n")
    assert first == "flowchart LR"
    drawn = Drawn()
    for line in lines:
        if vertex := MERMAID_VERTEX.fullmatch(line):
            name, left, label, right = vertex.groups()
            assert name not in drawn.vertices
            drawn.vertices[name] = left + right, tuple(map(_of_mermaid, label.split("<br>")))
            continue
        edge = MERMAID_EDGE.fullmatch(line)
        assert edge, line
        drawn.edges.append((edge[1], edge[2], edge[3]))
    return drawn


def _of_mermaid(text: str) -> str:
    return re.sub(r"#(\d+);", lambda number: chr(int(number[1])), text)


DOT_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\w+|->|[{}\[\];=,])', re.DOTALL)


def read_dot(text: str) -> Drawn:
    tokens = list(_tokens(text))
    assert tokens[:3] == ["digraph", "claims", "{"]
    assert tokens[3:7] == ["rankdir", "=", "LR", ";"]
    assert tokens[-1] == "}"
    drawn, statements = Drawn(), tokens[7:-1]
    while statements:
        end = statements.index(";")
        statement, statements = statements[:end], statements[end + 1 :]
        match statement:
            case [name, "[", "shape", "=", shape, ",", "label", "=", label, "]"]:
                assert name not in drawn.vertices
                drawn.vertices[name] = shape, tuple(_of_dot(label))
            case [source, "->", target, "[", "label", "=", label, "]"]:
                (text,) = _of_dot(label)
                drawn.edges.append((source, text, target))
            case _:
                raise AssertionError(statement)
    return drawn


def _tokens(text: str) -> Iterator[str]:
    place = 0
    while place < len(text.rstrip()):
        token = DOT_TOKEN.match(text, place)
        assert token, text[place:]
        yield token[1]
        place = token.end()


def _of_dot(label: str) -> list[str]:
    r"""The lines of a label. ``\n`` begins a line; no other escape has a meaning but its sign."""
    assert label[0] == label[-1] == '"'
    lines = _split(label[1:-1])
    assert not any(re.search(r"&(?!amp;)", line) for line in lines)
    return [line.replace("&amp;", "&") for line in lines]


def _split(label: str) -> list[str]:
    lines, signs = [""], iter(label)
    for sign in signs:
        escaped = next(signs) if sign == "\\" else ""
        assert escaped in {"", "n", "\\", '"'}
        if escaped == "n":
            lines.append("")
        else:
            lines[-1] += escaped or sign
    return lines


def graph(seed: int, names: list[str]) -> Graph:
    """A graph whose form depends on the seed alone."""
    rng, made = Random(seed), Graph()
    kinds = rng.choices((POD, CLAIM, DEVICE, NODE, "Deployment", "3 pods"), k=len(names) // 3)
    for number, kind in enumerate(kinds):
        own = number % 3 == 0 and kind == "Deployment"
        name, owner, note = names[3 * number : 3 * number + 3]
        made.add(Vertex(owner if own else kind, name, note if number % 2 else ""))
    keys = list(made.vertices)
    for _ in range(2 * len(keys)):
        source, target = rng.sample(keys, 2)
        made.connect(source, target, rng.choice(LABELS))
    return made


def shapes(drawn: Drawn) -> tuple[object, ...]:
    """Everything but the texts."""
    form = {name: (shape, len(lines)) for name, (shape, lines) in drawn.vertices.items()}
    return form, drawn.edges


READERS: dict[Callable[[Graph], str], Callable[[str], Drawn]] = {
    drawing.mermaid: read_mermaid,
    drawing.dot: read_dot,
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("draw", READERS, ids=["mermaid", "dot"])
def test_a_name_is_a_name_in_a_diagram(draw: Callable[[Graph], str], seed: int) -> None:
    harmless = graph(seed, [f"name-{number}" for number in range(30)])
    hostile = graph(seed, texts(seed, 30))
    text = draw(hostile)
    drawn = READERS[draw](text)
    assert shapes(drawn) == shapes(READERS[draw](draw(harmless)))
    for (_, lines), vertex in zip(drawn.vertices.values(), hostile.vertices.values(), strict=True):
        assert lines == tuple(map(visible, filter(None, (vertex.kind, vertex.name, vertex.note))))
    assert obeyed(text) == set()


@pytest.mark.parametrize("words", ["javascript:", "click", "%%{", "`", "$$", "http://", "style"])
def test_words_of_mermaid_have_no_meaning_in_a_name(words: str) -> None:
    made = Graph()
    made.add(Vertex(words, f"x:{words}#1;"))
    label = drawing.mermaid(made).split('"')[1]
    assert not set(label.replace("<br>", "")) & set("%`$:<>&{}\"'")


def test_a_long_name_is_cut_in_every_drawing() -> None:
    made = Graph()
    made.add(Vertex("Deployment", "x" * 1_000_000))
    for text in (drawing.mermaid(made), drawing.dot(made), *drawing.lines(made)):
        assert len(text) < 1000


@pytest.mark.parametrize("kind", ["FORGED: all is lost", TEXT, *texts(7, 10)])
def test_no_line_of_a_tree_begins_with_the_kind_that_a_pod_names(kind: str) -> None:
    made = Graph()
    made.connect(made.add(Vertex(kind, TEXT)), made.add(Vertex(POD, "a", TEXT)), "makes")
    text = "\n".join(drawing.lines(made))
    assert text.startswith("'") or text.startswith('"')
    assert obeyed(text) == set()
    assert forged_lines(text) == []
    assert len(text.split("\n")) == 2
