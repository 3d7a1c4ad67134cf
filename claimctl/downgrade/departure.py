"""List the pods of PodGroups in the claims, and delete the groups, before an upgrade.

Schedulers bind the pods of a listed group without a write to the claim, as long as the group's
object exists. When the object is gone, new pods of the group wait, and kube-controller-manager
takes the group out of the lists at once. A pod that a scheduler is binding just then is refused by
its kubelet until it is listed itself. So the pods are listed first, and each group goes right after
a LIST that shows no further pod, if there is such a moment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

from claimctl.downgrade.crossing import own_groups, remove_group
from claimctl.downgrade.expander import Expander
from claimctl.downgrade.expansion import workload_references
from claimctl.downgrade.plan_run import ATTEMPTS, PlanRun, unskipped
from claimctl.downgrade.pods import PodsOfClaims, with_pods
from claimctl.parallel import in_parallel
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.podgroups import PodGroup

ROUNDS = 3
"""How often a group waits for a moment in which all its pods are listed."""


class Departure:
    """The departure of claimctl's PodGroups in one run.

    It writes the lists of claims, deletes PodGroups, and changes the records of the run. The run
    stores them.

    Args:
        uncertain: by claim UID: the references that an earlier write may have removed.
    """

    def __init__(
        self, run: PlanRun, expander: Expander, uncertain: Mapping[str, Collection[str]]
    ) -> None:
        self._run, self._expander, self._uncertain = run, expander, uncertain

    async def list_pods(self, claims: Mapping[str, ResourceClaim]) -> None:
        """List the pods beside their groups, as far as there is room."""
        for _ in range(ATTEMPTS):
            again = await self._pass(unskipped(self._run.records, claims), {})
            claims = await self._run.read(again)
            if not claims:
                return

    async def delete_groups(self, claims: Mapping[str, ResourceClaim]) -> None:
        """Delete all PodGroups of claimctl. The plan's status has those that claims list."""
        client, at_once = self._run.client, self._run.parallelism
        groups = await own_groups(client)
        for _ in range(ROUNDS):
            due, again = unskipped(self._run.records, claims), set[str]()
            for start in range(0, len(due), at_once):  # few, so that the LIST is young
                few = due[start : start + at_once]
                again |= await self._pass(few, groups)
                # the pods that came in between, before their kubelets look
                now = await self._run.read(claim.metadata.uid for claim in few)
                await self._pass(unskipped(self._run.records, now), {})
            claims = await self._run.read(again)
            if not claims:
                break
        left = (await own_groups(client)).values()
        await in_parallel(partial(remove_group, client), left, at_once)

    async def _pass(
        self, claims: Sequence[ResourceClaim], groups: Mapping[str, PodGroup]
    ) -> set[str]:
        """List the pods of these claims beside their groups.

        Args:
            groups: by UID, the groups to delete if the list of their claim has all pods.

        Returns:
            The UIDs of the claims whose lists had not all pods.
        """
        again: set[str] = set()

        async def list_one(pods: PodsOfClaims, claim: ResourceClaim) -> None:
            uid, records = claim.metadata.uid, self._run.records
            attempt = await self._expander.list_beside_groups(
                records[uid], claim, pods, self._uncertain.get(uid, ())
            )
            records[uid] = attempt.record
            if attempt.again:
                again.add(uid)
                return
            for group in map(groups.get, (entry.uid for entry in workload_references(claim))):
                if group is not None:
                    await remove_group(self._run.client, group)

        async for chunk, pods in with_pods(self._run.client, claims):
            await in_parallel(partial(list_one, pods), chunk, self._run.parallelism)
        return again
