"""The dialect of the cluster: detected at the start and again whenever it may have changed."""
