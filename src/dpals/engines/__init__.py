"""Engines: run a pass over the blocks of a population, wherever these are."""
