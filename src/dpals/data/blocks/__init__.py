"""Blocks of users on disk: how they are written from tables larger than memory, stored, and opened to train on."""
