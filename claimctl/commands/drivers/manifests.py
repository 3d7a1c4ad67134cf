"""What a check makes: one Job that owns everything else, and for each node a claim and pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from claimctl.wire.claims import Reference
from claimctl.wire.reservations import DRIVER_CHECK_LABEL as LABEL
from claimctl.wire.resources import JOBS

LEFT_SECONDS = 60
"""So long after its last renewal the Job ends, and Kubernetes removes what it owns."""
Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """One run.

    Attributes:
        name: of its Job, and how all other names begin.
        uid: of the Job; '' before it is made.
    """

    name: str
    namespace: str
    driver: str
    device_class: str
    image: str
    uid: str = ""

    @property
    def hold(self) -> Reference:
        """The entry of a workload, as claimctl would write it to hold a claim for this Job."""
        return Reference(api_group=JOBS.group, resource=JOBS.plural, name=self.name, uid=self.uid)

    def job(self) -> Manifest:
        """The owner: a Job without pods, which ends by itself unless its deadline is moved."""
        template = {"metadata": {"labels": {LABEL: self.name}}, "spec": self._pod_spec()}
        return {
            "metadata": {"name": self.name, "labels": {LABEL: self.name}},
            "spec": {
                "parallelism": 0,
                "backoffLimit": 0,
                "activeDeadlineSeconds": LEFT_SECONDS,
                "ttlSecondsAfterFinished": 0,
                "template": template,
            },
        }

    def claim(self, name: str, version: str) -> Manifest:
        """A claim of one device of this driver, whatever else the class selects.

        Args:
            version: of the API; v1beta1 has the fields of a request in the request itself.
        """
        only = {"cel": {"expression": f'device.driver == "{self.driver}"'}}
        asked = {"deviceClassName": self.device_class, "selectors": [only]}
        request = asked if version == "v1beta1" else {"exactly": asked}
        requests = [{"name": "device", **request}]
        return {"metadata": self._meta(name), "spec": {"devices": {"requests": requests}}}

    def pod(self, name: str, claim: str, node: str, *, gated: bool = False) -> Manifest:
        """A pod that uses the claim on this node, and does nothing."""
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        spec = self._pod_spec(claim) | {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
            },
            "tolerations": [{"operator": "Exists"}],
            **({"schedulingGates": [{"name": LABEL}]} if gated else {}),
        }
        return {"metadata": self._meta(name), "spec": spec}

    def _meta(self, name: str) -> Manifest:
        owner = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": self.name}
        labels = {LABEL: self.name}
        return {"name": name, "labels": labels, "ownerReferences": [{**owner, "uid": self.uid}]}

    def _pod_spec(self, claim: str = "") -> Manifest:
        """A pod for namespaces with the PodSecurity level restricted, and with quotas."""
        room = {"cpu": "10m", "memory": "32Mi"}
        container: Manifest = {
            "name": "pause",
            "image": self.image,
            "resources": {"requests": room, "limits": room},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            },
        }
        spec: Manifest = {
            # a pod whose image ends by itself keeps its devices; a Job wants no such pods
            "restartPolicy": "Always" if claim else "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65535,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        }
        if claim:
            container["resources"] = {**container["resources"], "claims": [{"name": "device"}]}
            spec["resourceClaims"] = [{"name": "device", "resourceClaimName": claim}]
        return spec
