"""The verbs of the API on plain dicts: get, list, watch, create, update, patch, delete."""
