"""Run whole clusters on one machine: a real control plane, kubelets, containers, a DRA driver.

A cluster runs in namespaces of its own (``enclosure``): nothing reaches the network of the machine,
and when the run ends, also by SIGKILL, the kernel ends every process and takes every mount away.
The folder in ``KUBEBUILDER_ASSETS`` has ``kubelet`` beside the programs of the control plane.
containerd, runc and the CNI plugins are those of the machine (``needs``).
"""
