"""The JSON and YAML documents that commands print, as models, and their JSON Schemas.

The schemas are in ``claimctl/documents/schemas``, one file for each kind, also in the package.
``make generate`` writes them from the models.
"""
