"""The command line: one file a command.

How a command is made:

* ``claimctl/cli/<name>.py`` (dashes of the name become underscores) has one public function
  ``command(...) -> int`` with typer annotations. Its docstring is the help of the command, what it
  returns is the exit code (``claimctl.cli.errors.ExitCode``).
* The name and one line of help stand in the table of ``claimctl.cli.registry``. The file is
  imported only when the command is called, so that ``claimctl --help`` stays quick; imports of
  aiohttp, pydantic, kubernetes, rich and of whatever needs them belong inside functions.
* Options that several commands have are the annotated types in ``claimctl.cli.options``.
* Trouble is raised, not printed: ``UsageError`` and ``CommandFailed`` of ``claimctl.cli.errors``,
  ``ConfigError`` and ``KubeError`` of ``claimctl.kube.errors``. One place,
  ``claimctl.cli.errors.guarded``, turns them into a line on stderr and an exit code.
* A command parses, builds its options and hands over to ``run(client, ..., out)``; printing goes
  through ``claimctl.cli.output``.
"""
