"""How the processes of the judges are set up."""

from __future__ import annotations

import logging

import structlog


def quiet() -> None:
    """Switch logs off in a process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
