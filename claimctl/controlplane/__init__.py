"""Real control planes on the loopback: etcd and the Kubernetes programs of one folder.

The folder is what ``KUBEBUILDER_ASSETS`` names: ``etcd``, ``kube-apiserver``,
``kube-controller-manager`` and ``kube-scheduler``. Nothing here decides about claims; kubelets are
played by a stand-in (``kubelet``), since their program needs containers.
"""
