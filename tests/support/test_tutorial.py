"""Which files and commands a tutorial has."""

from __future__ import annotations

from tests.support.tutorial import PAGE, File, Typed, steps

TEXT = """# Title

## 1. One

    first &

Save this as `a.yaml`:

```yaml
a:
    b: 1
```

```text
    output
```

## 2. Two

    second
"""


def test_files_and_commands_in_their_order() -> None:
    assert steps(TEXT) == [
        Typed("first &", "1. One"),
        File("a.yaml", "a:\n    b: 1\n"),
        Typed("second", "2. Two"),
    ]
    assert steps(TEXT)[0] == Typed("first &", "1. One")


def test_the_tutorial_has_files_and_commands() -> None:
    parts = steps(PAGE.read_text(encoding="utf-8"))
    names = [part.name for part in parts if isinstance(part, File)]
    assert names == ["train.yaml", "shard.yaml", "policy.yaml"]
    assert sum(isinstance(part, Typed) for part in parts) > 20
