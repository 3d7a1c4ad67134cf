"""The JSON and YAML documents that commands print, as models.

``python -m claimctl.documents KIND`` prints the JSON Schema of a kind.
"""
