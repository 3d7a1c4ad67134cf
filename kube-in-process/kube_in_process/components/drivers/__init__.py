"""The emulated DRA drivers: what they answer to kubelets, and what they publish."""
