"""The one word for what all requests carry."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
"""A Kubernetes object, or a part of one, as plain JSON."""
