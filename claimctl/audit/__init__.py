"""The witness: it reads the history of a cluster and says which promises were broken.

It shares no code with what claimctl decides by. What a consumer is, is written down twice, so that
a mistake there does not excuse itself here.
"""
