"""The promises under fire on a real control plane, judged by the same witness.

``controllers`` and ``havoc`` run and kill processes, ``people`` act, ``schedule`` and ``epilogue``
are the life of one namespace, and ``judge`` has the witness read its history.
"""
