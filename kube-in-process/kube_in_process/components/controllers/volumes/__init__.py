"""The controllers of volumes: they bind claims, make volumes, and protect what is used."""
