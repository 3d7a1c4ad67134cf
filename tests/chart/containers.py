"""Runs the containers of claimctl's pods as processes, since no image can be pulled here.

A stand-in for kubelets starts the pods, but runs nothing. ``Containers`` starts a process for each
running pod of the image: with the container's arguments and variables, and with a token of the
pod's ServiceAccount, and without the packages that the image does not have. A pod of a hook ends
with the exit code of its process.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import yaml
from kube_in_process.components.kubelet.statuses import finished
from kube_in_process.real.client import STRATEGIC
from kube_in_process.serving.kubeconfig import Access, kubeconfig
from packaging.utils import canonicalize_name

from claimctl.kube.errors import ApiError
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient
from generate.locked import entries, part

ROOT = Path(__file__).parents[2]
NOT_IN_THE_IMAGE = {each.name for each in entries(part("demo"))} - {
    each.name for each in entries(part("image"))
}
IMAGE = "registry.example.com/claimctl"
POD = ("v1", "Pod")
CONFIG_MAP = ("v1", "ConfigMap")
Json = dict[str, Any]
_POLL_SECONDS = 0.2
_END_SECONDS = 30.0


@dataclass
class Container:
    """One process. ``output`` is what it has printed when it has ended."""

    pod: Json
    process: asyncio.subprocess.Process
    output: str = ""

    @property
    def arguments(self) -> list[str]:
        return list(self.pod["spec"]["containers"][0]["args"])


@dataclass
class Containers:
    """The processes of all pods of the image, by the pods' UIDs."""

    transport: Transport
    admin: Path
    """The kubeconfig of an administrator; only the address of the server is taken from it."""
    directory: Path
    running: dict[str, Container] = field(default_factory=dict)
    ended: list[Container] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def run(self) -> None:
        """Start and stop processes until cancelled."""
        client = DocumentClient(self.transport, "container-runtime")
        while True:
            pods = {pod["metadata"]["uid"]: pod for pod in await client.list(POD) if _ours(pod)}
            for uid, pod in pods.items():
                if uid not in self.running and _runs(pod):
                    await self._start(client, uid, pod)
            for uid, container in list(self.running.items()):
                if uid not in pods or "deletionTimestamp" in pods[uid]["metadata"]:
                    with suppress(ProcessLookupError):
                        container.process.terminate()
            await asyncio.sleep(_POLL_SECONDS)

    async def close(self) -> None:
        for container in self.running.values():
            with suppress(ProcessLookupError):
                container.process.terminate()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_END_SECONDS)
            for container in self.running.values() if late else ():
                container.process.kill()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _start(self, client: DocumentClient, uid: str, pod: Json) -> None:
        file = self.directory / f"{uid}.kubeconfig"
        file.write_text(await self._kubeconfig(pod))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "claimctl", *await self._mounted(client, pod)),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={
                "KUBECONFIG": str(file),
                "HOME": str(self.directory),
                "PATH": "/usr/bin:/bin",
                "PYTHONPATH": str(without_packages(self.directory)),
            },
        )
        container = self.running[uid] = Container(pod, process)
        task = asyncio.create_task(self._follow(client, uid, container))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _mounted(self, client: DocumentClient, pod: Json) -> list[str]:
        """The arguments, with files of mounted ConfigMaps where the pod's paths are."""
        arguments, spec = _arguments(pod), pod["spec"]
        mounts = spec["containers"][0].get("volumeMounts", ())
        places = {each["name"]: each["mountPath"] for each in mounts}
        for volume in spec.get("volumes", ()):
            if "configMap" not in volume:
                continue
            name = volume["configMap"]["name"]
            found = await client.get(CONFIG_MAP, pod["metadata"]["namespace"], name)
            folder = self.directory / pod["metadata"]["uid"]
            folder.mkdir()
            for key, text in found["data"].items():
                (folder / key).write_text(text)
            place = places[volume["name"]]
            arguments = [each.replace(f"={place}/", f"={folder}/") for each in arguments]
        return arguments

    async def _follow(self, client: DocumentClient, uid: str, container: Container) -> None:
        """Read what the process prints; report the end of a pod that is not started again."""
        out, _ = await container.process.communicate()
        container.output = out.decode()
        self.ended.append(self.running.pop(uid))
        pod, code = container.pod, container.process.returncode or 0
        if pod["spec"]["restartPolicy"] != "Never":
            return
        meta = pod["metadata"]
        status = finished(pod, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), code)
        with suppress(ApiError):
            patch = {"status": status}
            await client.patch_status(POD, meta["namespace"], meta["name"], patch, STRATEGIC)

    async def _kubeconfig(self, pod: Json) -> str:
        """What a pod finds in its volume: the server, its certificate, a token, the namespace."""
        cluster = yaml.safe_load(self.admin.read_text())["clusters"][0]["cluster"]
        certificate = base64.b64decode(cluster.get("certificate-authority-data", "")).decode()
        namespace = pod["metadata"]["namespace"]
        token = await self._token(namespace, pod["spec"]["serviceAccountName"])
        text = kubeconfig(Access(cluster["server"], token, certificate))
        document = yaml.safe_load(text)
        document["contexts"][0]["context"]["namespace"] = namespace
        return yaml.safe_dump(document)

    async def _token(self, namespace: str, account: str) -> str:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        headers = {"content-type": "application/json", "accept": "application/json"}
        answer = await self.transport.send("POST", path, (), headers, b'{"spec":{}}')
        body = json.loads(b"".join([part async for part in answer.body]))
        assert answer.status == 201, body
        return str(body["status"]["token"])


def without_packages(folder: Path) -> Path:
    """A folder for PYTHONPATH that hides the packages that the image does not have."""
    hidden = folder / "hidden"
    hidden.mkdir(exist_ok=True)
    modules = sorted(
        module
        for module, names in packages_distributions().items()
        if {canonicalize_name(name) for name in names} <= NOT_IN_THE_IMAGE
    )
    (hidden / "sitecustomize.py").write_text(_HIDE.format(modules=modules))
    return hidden


_HIDE = """
import sys

MODULES = {modules}


class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Hidden())
"""


def _ours(pod: Json) -> bool:
    return bool(pod["spec"]["containers"][0]["image"].startswith(f"{IMAGE}:"))


def _runs(pod: Json) -> bool:
    gone = "deletionTimestamp" in pod["metadata"]
    return not gone and pod.get("status", {}).get("phase") == "Running"


def _arguments(pod: Json) -> list[str]:
    """The arguments as the kubelet fills them in. All processes share the ports of one machine."""
    [container] = pod["spec"]["containers"]
    arguments = list(container["args"])
    for variable in container.get("env", ()):
        # the only field that a variable takes is the namespace
        value = variable.get("value") or pod["metadata"]["namespace"]
        arguments = [each.replace(f"$({variable['name']})", value) for each in arguments]
    return [
        "--bind-address=127.0.0.1:0" if each.startswith("--bind-address") else each
        for each in arguments
    ]


@asynccontextmanager
async def running(containers: Containers) -> AsyncIterator[Containers]:
    task = asyncio.create_task(containers.run(), name="containers")
    try:
        yield containers
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await containers.close()
