"""The demonstration of claimctl: its story, and the commands that play it."""

__version__ = "0.1.0"
