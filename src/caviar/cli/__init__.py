"""The command line. It uses the public names of caviar only."""

from __future__ import annotations

import sys
from io import TextIOWrapper

from caviar._extras import install_command

__all__ = ["main"]


def main() -> None:
    """Run the command line; what it needs besides the library comes with the extra ``cli``."""
    try:
        from .app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in {"typer", "rich", "click"}:
            raise
        sys.stderr.write(
            f"The command line needs {error.name}; install what it needs by {install_command('cli')}\n"
        )
        sys.exit(1)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(
            errors="backslashreplace"
        )  # names of columns may lie outside the terminal's encoding
    app(prog_name="caviar")
