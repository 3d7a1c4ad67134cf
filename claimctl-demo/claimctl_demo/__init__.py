"""The demonstration of claimctl: its story, real control planes, and the witness that judges."""
