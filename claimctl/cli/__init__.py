"""The shell of all commands: what they have in common.

How to write a command:

* A feature has a folder in ``claimctl.commands``. One of its files has a function for the command,
  with typer annotations. Its docstring is the help of the command. It returns the exit code
  (``claimctl.cli.errors.ExitCode``). ``EXAMPLES`` has lines for the help of all these functions.
* ``claimctl.cli.registry`` has the name, the function and one line of help. A command's file is
  imported only when the command is called, so that ``claimctl --help`` stays quick. Imports of
  aiohttp, pydantic, kubernetes, rich, and of modules that import these, belong inside functions.
* ``claimctl.cli.options`` has the options that several commands share.
* A command raises errors and does not print them: ``UsageError`` and ``CommandFailed`` of
  ``claimctl.cli.errors``, ``ConfigError`` and ``KubeError`` of ``claimctl.kube.errors``.
  ``claimctl.cli.errors.guarded`` turns them into a line on stderr and an exit code.
* A command reads its options and calls ``run``, which prints through ``claimctl.cli.output``.
"""
