"""Makes the files of a release: ``python -m release``."""
