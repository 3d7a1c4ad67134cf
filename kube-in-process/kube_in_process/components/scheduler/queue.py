"""The queue of the scheduler: pods by age, and the steps of bindings before them."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from kube_in_process.runtime.workqueue import WorkQueue

Task = tuple[str, str, str]
"""('pod', namespace, name) to plan, or ('bind', '', UID) to continue a binding."""


class SchedulingQueue(WorkQueue[Task]):
    """Pods of higher priority come first; others in the order in which they came or were refused.

    A woken pod keeps its place before pods that came after its last refusal. That is the rule of
    k8s.io/kubernetes/pkg/scheduler (framework/plugins/queuesort, with the timestamps of
    backend/queue). ``priority`` returns the priority of a pod.
    """

    def __init__(self, backoff: tuple[float, ...], priority: Callable[[Task], int]) -> None:
        super().__init__(backoff)
        self._priority = priority
        self._count = itertools.count()
        self._since: dict[Task, int] = {}
        self._by_age: list[tuple[int, int, Task]] = []
        """A heap of the ready pods. Entries of a former age stay in it and are passed over."""

    def add(self, key: Task) -> None:
        if key[0] == "pod" and key not in self._ready:
            self._since.setdefault(key, next(self._count))
            self._push(key)
        super().add(key)

    def renew(self, key: Task) -> None:
        """Put a pod behind all others, because it is new or was refused."""
        self._since[key] = next(self._count)
        if key in self._ready:
            self._push(key)

    def _push(self, key: Task) -> None:
        heapq.heappush(self._by_age, (-self._priority(key), self._since[key], key))

    def leave(self, key: Task) -> None:
        """Forget a pod that is gone, or needs no place any more."""
        self._since.pop(key, None)
        self._ready.pop(key, None)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _take(self) -> Task:
        first = next(iter(self._ready))
        if first[0] == "bind":
            return super()._take()
        while True:
            _, since, key = heapq.heappop(self._by_age)
            if self._since.get(key) == since and key in self._ready:
                del self._ready[key]
                return key
