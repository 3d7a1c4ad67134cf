"""What only this process knows, by its own clock. It is noted whether this process leads or not.

``observations`` has all of it, and says what each change of an object and each own write adds:

- of claims: ``claims`` (ages, and what may have been missed), ``openings`` (the entries of lists,
  and the pods that come), ``reservations``, ``own_writes``;
- of pods that vanished: ``ghosts`` (who is one, and until when), ``known_ghosts`` (their store),
  ``ghost_signs`` (which have ended) by what ``boots``, ``kubelets`` and ``slices`` know of nodes;
- of the cluster: ``drivers`` that refuse a hold, and the ``group_names`` that have rested.
"""
