"""The commands of ``claimctl`` that need a cluster in a process."""

COMMANDS = {
    "Try it": {
        "demo": ("claimctl_demo.commands.demo", "Show the whole story on an embedded cluster."),
        "demo cluster": (
            "claimctl_demo.commands.cluster",
            "Serve an embedded cluster to play with.",
        ),
    }
}
"""What ``claimctl.cli.registry`` lists: by group and name, the module and one line of help."""
