"""An embedded cluster on a loopback port: its certificate and its kubeconfig."""
