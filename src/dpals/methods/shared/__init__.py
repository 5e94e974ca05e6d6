"""Releases and steps that several methods share."""
