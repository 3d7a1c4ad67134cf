"""What real schedulers do with resources, priorities and DaemonSets, against the embedded one."""
