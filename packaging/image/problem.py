"""What ends a build with one line."""

from __future__ import annotations


class ImageProblem(Exception):
    """The build cannot go on. ``code`` is the exit code: 2 for bad input, 1 for the rest."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code
