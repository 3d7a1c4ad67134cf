"""How to reach a cluster: by kubeconfig files, kubectl's flags and plugins, or a pod's account."""
