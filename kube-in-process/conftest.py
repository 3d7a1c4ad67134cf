"""Tests repeat: Hypothesis tries the same examples every time.

``HYPOTHESIS_PROFILE=explore`` tries others, and many more of them.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeat", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))
