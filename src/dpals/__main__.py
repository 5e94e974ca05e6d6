"""``python -m dpals`` is the command ``dpals``."""

from dpals.cli import main

if __name__ == "__main__":
    main()
