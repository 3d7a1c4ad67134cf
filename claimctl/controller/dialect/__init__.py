"""Which API the cluster speaks: asked at the start, and watched afterwards."""
