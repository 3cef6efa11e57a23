"""``python -m cotidal``: the command line."""

from __future__ import annotations

from cotidal.cli.main import main

if __name__ == "__main__":
    main()
