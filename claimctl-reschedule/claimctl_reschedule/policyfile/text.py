"""The text of a policy file as one mapping. Nothing in it is repeated or lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from claimctl_reschedule.policyfile.problems import PolicyError

LARGEST = 1 << 18
"""A larger file is no policy; bytes."""
MOST_VALUES = 5_000
"""What a file says, with all its aliases written out."""
DEEPEST = 40
LONGEST_NUMBER = 40
_TEXT = "tag:yaml.org,2002:str"


class _Refused(yaml.MarkedYAMLError):
    """YAML that no policy needs, and that could keep claimctl busy or hide what is meant."""

    def __init__(self, problem: str, node: yaml.Event | yaml.Node) -> None:
        mark = node.start_mark
        super().__init__(
            problem=problem, problem_mark=mark if isinstance(mark, yaml.Mark) else None
        )


class _Loader(yaml.SafeLoader):
    """Loads YAML with the types of JSON: times stay strings, and no key may be repeated.

    What aliases stand for counts each time, while the file is read: a few lines of aliases of
    aliases can mean more than fits into memory.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = self._values = 0
        self._sizes: dict[yaml.Node, int] = {}
        """How many values the nodes stand for that are read to their end."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        peek: Callable[[], yaml.Event] = self.peek_event
        event, before = peek(), self._values
        tag = getattr(event, "tag", None)
        if tag not in (None, "!", _TEXT):
            raise _Refused(f"the tag {tag.replace('tag:yaml.org,2002:', '!!')} is not read", event)
        self._depth += 1
        if self._depth > DEEPEST:
            raise _Refused(f"is nested deeper than {DEEPEST} levels", event)
        node = super().compose_node(parent, index)
        assert node is not None
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent) and node not in self._sizes:
            raise _Refused(f"the alias {event.anchor} stands for a part of itself", event)
        self._values += self._sizes.get(node, 1)
        if self._values > MOST_VALUES:
            raise _Refused(f"has more than {MOST_VALUES} values, with its aliases", event)
        self._sizes.setdefault(node, self._values - before)
        if node.tag.endswith((":int", ":float")) and len(node.value) > LONGEST_NUMBER:
            raise _Refused(f"a number has at most {LONGEST_NUMBER} characters", event)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _Refused("a key is a text", key)
            if key.value in seen:
                raise _Refused(f"the key {key.value} is repeated", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    key: [(tag, regexp) for tag, regexp in resolvers if not tag.endswith(":timestamp")]
    for key, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: Path) -> str:
    """The text of the file; raises PolicyError if it cannot be read."""
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
    """The only document of the file; raises PolicyError if the text is not exactly one mapping."""
    try:
        loaded = list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark is not None else ""
        raise PolicyError(f"{line}{error.problem or 'this is not YAML'}") from None
    except yaml.YAMLError as error:
        raise PolicyError(f"is not YAML: {' '.join(str(error).split())}") from None
    documents = [document for document in loaded if document is not None]
    if not documents:
        raise PolicyError("is empty: a DeschedulerPolicy is expected")
    if len(documents) > 1:
        raise PolicyError(f"has {len(documents)} documents: one DeschedulerPolicy is expected")
    (document,) = documents
    if not isinstance(document, dict):
        texts = ((list, "a list"), (str, "a text"))
        kind = next((text for type_, text in texts if isinstance(document, type_)), "one value")
        raise PolicyError(f"is {kind}: a DeschedulerPolicy with apiVersion and kind is expected")
    # as JSON has it: every key is a text
    try:
        parsed: dict[str, Any] = json.loads(json.dumps(document))
    except (TypeError, ValueError) as error:
        raise PolicyError(f"is not a policy: {error}") from None
    return parsed
