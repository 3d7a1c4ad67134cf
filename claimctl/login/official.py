"""The used parts of the official client. It has no type hints, so they have the type Any here.

Import this module where it is needed, not at the top of a module: it takes 0.3 s and 25 MB.
"""

from __future__ import annotations

from typing import Any

from kubernetes.aio.client import Configuration as _Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.exec_provider import ExecProvider as _ExecProvider
from kubernetes.aio.config.kube_config import ConfigNode as _ConfigNode
from kubernetes.aio.config.kube_config import KubeConfigLoader as _KubeConfigLoader

Configuration: Any = _Configuration
ConfigNode: Any = _ConfigNode
ExecProvider: Any = _ExecProvider
KubeConfigLoader: Any = _KubeConfigLoader

__all__ = [
    "ConfigException",
    "ConfigNode",
    "Configuration",
    "ExecProvider",
    "KubeConfigLoader",
]
