"""The preset of an embedded cluster in which claimctl speaks a dialect."""

from __future__ import annotations

from kube_in_process.options import Preset

PRESETS = {
    "native": Preset.RESERVED_FOR_ANY_POD,
    "podgroup": Preset.POD_GROUPS,
    "hold": Preset.PLAIN,
}
DIALECTS = {preset: dialect for dialect, preset in PRESETS.items()}
