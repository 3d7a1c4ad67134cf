"""Claims that nobody will ever free: finding them, judging them, and freeing them.

``scan`` reads the cluster, ``judge`` says why a claim is left over and what stands against freeing
it (pure), and ``reclaim`` watches and frees with the rights of whoever asks.
"""
