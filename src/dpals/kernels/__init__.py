"""Compiled loops. They know arrays only."""
