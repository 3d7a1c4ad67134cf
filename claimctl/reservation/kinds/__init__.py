"""Rules that say when workloads of a kind want pods, are idle, or have ended."""
