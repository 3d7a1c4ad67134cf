"""The text of a policy file as one mapping. Nothing in it is repeated or lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from claimctl.reschedule.policyfile.problems import PolicyError

LARGEST = 1 << 20
"""A larger file is no policy; bytes."""


class _Repeated(yaml.MarkedYAMLError):
    """A key stands twice in one mapping; YAML would keep the last one silently."""


class _Loader(yaml.SafeLoader):
    """Loads YAML with the types of JSON: times stay strings, and no key may be repeated."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                raise _Repeated(problem=f"the key {name} is repeated", problem_mark=key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    key: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith(":timestamp")]
    for key, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path) -> str:
    """The text of the file.

    Raises:
        PolicyError: the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except IsADirectoryError:
        raise PolicyError("is a directory: name the policy file in it") from None
    except OSError as error:
        raise PolicyError(f"cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise PolicyError(f"has {len(data)} bytes: a policy file has at most {LARGEST}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise PolicyError("is not UTF-8: a YAML or JSON file is expected") from None


def mapping(text: str) -> dict[str, Any]:
    """The only document of the file.

    Raises:
        PolicyError: the text is no YAML, or not exactly one mapping.
    """
    try:
        documents = [each for each in yaml.load_all(text, Loader=_Loader) if each is not None]
    except yaml.MarkedYAMLError as error:
        raise PolicyError(_where(error)) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise PolicyError(f"is not YAML: {' '.join(str(error).split())}") from None
    if not documents:
        raise PolicyError("is empty: a DeschedulerPolicy is expected")
    if len(documents) > 1:
        raise PolicyError(f"has {len(documents)} documents: one DeschedulerPolicy is expected")
    (document,) = documents
    if not isinstance(document, dict):
        texts = ((list, "a list"), (str, "a text"))
        kind = next((text for type_, text in texts if isinstance(document, type_)), "one value")
        raise PolicyError(f"is {kind}: a DeschedulerPolicy with apiVersion and kind is expected")
    return _with_text_keys(document)


def _where(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    line = f"line {mark.line + 1}: " if mark is not None else ""
    return f"{line}{error.problem or 'this is not YAML'}"


def _with_text_keys(document: dict[Any, Any]) -> dict[str, Any]:
    """The document as JSON has it: every key is a text."""
    try:
        parsed: dict[str, Any] = json.loads(json.dumps(document))
    except (TypeError, ValueError, RecursionError) as error:
        raise PolicyError(f"is not a policy: {error}") from None
    return parsed
