"""The same requests and the same actions, on a real control plane and on the embedded one."""
