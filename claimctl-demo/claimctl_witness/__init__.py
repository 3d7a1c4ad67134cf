"""The witness: it reads the history of a cluster and reports which promises were broken.

The witness shares no code with claimctl's decisions. It defines terms like 'consumer' a second
time, so a mistake in claimctl does not hide itself from the witness.
"""
