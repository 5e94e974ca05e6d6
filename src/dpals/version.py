"""The version, where everything can import it without importing anything else."""

__version__ = "0.1.0"
