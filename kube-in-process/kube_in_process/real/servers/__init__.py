"""Run real control planes on the loopback: etcd and the Kubernetes programs of one folder.

The environment variable ``KUBEBUILDER_ASSETS`` names the folder. It has ``etcd``,
``kube-apiserver``, ``kube-controller-manager`` and ``kube-scheduler``. This package makes no
decision about claims. A stand-in plays the kubelets (``kubelet``), because the real kubelet needs
a container runtime.
"""
