"""The shell of all commands: what they have in common.

How to write a command:

* A feature has a folder in ``claimctl.commands``. One of its files has a function for the command,
  with typer annotations. Its docstring is the help of the command. It returns the exit code
  (``claimctl.cli.errors.ExitCode``). ``EXAMPLES`` has lines for the help of all these functions.
* ``claimctl.cli.registry`` has the name, the function and one line of help. A command's file is
  imported only when the command is called, so that ``claimctl --help`` stays quick. Imports of
  aiohttp, msgspec, yaml, and of modules that import these, belong inside functions.
* A command imports no library that it does not use in this run: rich when a terminal gets a table
  or a live line, structlog with the first line of a log, pydantic for a flag that is a number or a
  path, and what is only for what is wrong, where something is wrong. Such imports are inside
  functions, too. ``tests/unit/cli/test_main_imports.py`` names what a command may import.
* ``claimctl.cli.options`` has the options that several commands share.
* A command raises errors and does not print them: ``UsageError`` and ``CommandFailed`` of
  ``claimctl.cli.errors``, ``ConfigError`` and ``KubeError`` of ``claimctl.kube.errors``.
  ``claimctl.cli.errors.guarded`` turns them into a line on stderr and an exit code.
* A command reads its options and calls ``run``, which prints through ``claimctl.cli.output``.
"""
