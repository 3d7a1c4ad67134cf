"""Manifests are read as Kubernetes reads them; what is wrong gets one line with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from claimctl_demo.story.manifests import load

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: one, namespace: ml}\n"


def written(tmp_path: Path, text: str | bytes) -> str:
    file = tmp_path / "file.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(file)


def test_documents_are_counted_without_the_empty_ones(tmp_path: Path) -> None:
    file = written(tmp_path, f"# only a comment\n---\n{POD}---\n\n---\n{POD}")
    manifests, problems = load([file])
    assert problems == []
    assert [each.where for each in manifests] == [
        f"{file}, document 1 (Pod one)",
        f"{file}, document 2 (Pod one)",
    ]


def test_the_items_of_a_list_are_objects_of_their_own(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod",'
        ' "metadata": {"name": "a"}}, 3]}',
    )
    manifests, problems = load([file])
    assert [(each.name, each.namespace) for each in manifests] == [("a", "default")]
    assert problems == [f"{file}, document 1, item 2: not an object but int"]


def test_an_object_whose_name_the_server_makes_goes_by_its_prefix(tmp_path: Path) -> None:
    file = written(tmp_path, POD.replace("name: one", "generateName: one-"))
    assert load([file])[0][0].where == f"{file}, document 1 (Pod one-)"


def test_dates_and_numeric_keys_are_strings_as_in_json(tmp_path: Path) -> None:
    text = POD + "data: {day: 2026-01-01, 7: one, true: yes}\n"
    manifests, _ = load([written(tmp_path, text)])
    assert manifests[0].body["data"] == {"day": "2026-01-01", "7": "one", "true": True}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", ": no object in it", id="empty"),
        pytest.param("---\n# nothing\n---\n", ": no object in it", id="only comments"),
        pytest.param(b"\x89PNG\r\n\x1a\n\x00", ": not text (byte 0 is not UTF-8)", id="binary"),
        pytest.param(
            "a: [1, 2", ", document 1: not YAML: expected ',' or ']'", id="an open bracket"
        ),
        pytest.param("a\x00b: c", ", document 1: not YAML: special characters", id="NUL"),
        pytest.param("hello", ", document 1: not an object but str", id="just a word"),
        pytest.param("kind: Pod", ", document 1: apiVersion: Required value", id="no version"),
        pytest.param(
            "apiVersion: v1\nkind: [Pod]", ", document 1: kind: Required value", id="odd kind"
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod",
            ", document 1 (Pod): metadata.name: Required value",
            id="no name",
        ),
        pytest.param("a: !!python/object:x.Y {}", ", document 1: not YAML: could not", id="tag"),
        pytest.param("&a [*a]", ", document 1: nested too deeply", id="a list in itself"),
        pytest.param("{[1]: 2}", ", document 1: not YAML: found unhashable key", id="odd key"),
        pytest.param("a: !!binary aGk=", ", document 1: bytes has no place", id="bytes"),
    ],
)
def test_broken_files_get_one_line_with_the_place(
    tmp_path: Path, text: str | bytes, problem: str
) -> None:
    file = written(tmp_path, text)
    manifests, problems = load([file])
    assert manifests == []
    assert len(problems) == 1
    assert problems[0].startswith(f"{file}{problem}")
    assert "\n" not in problems[0]


def test_a_good_document_before_a_broken_one_is_not_half_taken(tmp_path: Path) -> None:
    file = written(tmp_path, f"{POD}---\na: [1\n")
    manifests, problems = load([file])
    assert manifests == []
    assert problems[0].startswith(f"{file}, document 2: not YAML")


def test_missing_files_and_directories_are_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.yaml")
    assert load([missing, str(tmp_path)]) == (
        [],
        [f"{missing}: No such file or directory", f"{tmp_path}: a directory, not a file"],
    )
