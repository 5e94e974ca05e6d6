"""A method of the registry is everywhere it must be, and nothing else is."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest
from tests.methods import test_threads
from tests.methods.every_method import IMPLICIT, METHODS, PRIVATE, RATINGS, make
from tests.privacy import test_methods as privacy

import dpals
from dpals.cli import methods as command
from dpals.methods.base import registry
from dpals.methods.base.estimator import Estimator, PrivateEstimator

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "dpals"
MANY_ARGUMENTS = {"DPALS", "AdaDPALS"}
"""Those of the paper."""


def test_every_public_method_of_the_library_is_in_it():
    """Looked for in the modules, and not in the table."""
    found = set()
    for path in (SOURCE / "methods").rglob("[a-z]*.py"):
        module = import_module(".".join(("dpals", *path.relative_to(SOURCE).with_suffix("").parts)))
        found |= {
            name
            for name, value in vars(module).items()
            if inspect.isclass(value) and issubclass(value, Estimator) and value.__module__ == module.__name__
        }
    assert found - {"Estimator", "PrivateEstimator", "GradientMethod"} == set(METHODS)
    assert len(METHODS) == len(registry.METHODS)


@pytest.mark.parametrize("name", METHODS)
class TestMethod:
    def test_is_a_public_name(self, name):
        assert name in dpals.__all__
        assert getattr(dpals, name).__module__ == METHODS[name].module

    def test_is_known_to_type_checkers(self, name):
        """They read the part of the package that Python does not run."""
        text = (SOURCE / "__init__.py").read_text()
        assert f"    from {METHODS[name].module} import {name} as {name}\n" in text

    def test_is_private_as_the_table_says(self, name):
        assert issubclass(getattr(dpals, name), PrivateEstimator) == METHODS[name].private
        assert (name in registry.NOT_PRIVATE) != METHODS[name].private

    def test_can_be_trained_with_the_command(self, name):
        """But for a search, which needs a grid."""
        commands = command.PRIVATE_CHOICES if METHODS[name].private else command.NOT_PRIVATE_CHOICES
        assert (name in commands.values()) == (name != "PrivateSearch")
        if name != "PrivateSearch":
            assert commands[METHODS[name].command] == name

    def test_is_in_the_reference(self, name):
        page = "private.md" if METHODS[name].private else "not_private.md"
        assert f"::: dpals.{name}\n" in (ROOT / "docs" / "reference" / page).read_text()

    def test_has_a_page_that_explains_it(self, name):
        pages = ("pooled_dpals.md", "compared_systems.md", "private_search.md")
        assert any(re.search(rf"`(dpals\.)?{name}\b", (ROOT / "docs" / page).read_text()) for page in pages)

    def test_declares_no_more_than_15_arguments(self, name):
        assert len(inspect.signature(getattr(dpals, name)).parameters) <= (31 if name in MANY_ARGUMENTS else 15)

    def test_takes_some_data(self, name):
        assert METHODS[name].ratings or METHODS[name].implicit
        assert make(name).get_params().keys() >= METHODS[name].small.keys()

    def test_is_tried_with_one_thread_and_with_several(self, name):
        assert name in test_threads.METHODS


@pytest.mark.parametrize("name", PRIVATE)
def test_neighbours_of_every_private_method_are_replayed(name):
    assert (name in privacy.METHODS) == (name in RATINGS)
    assert (name in privacy.IMPLICIT) == (name in IMPLICIT)


def test_names_on_the_command_line_are_different():
    commands = [method.command for method in registry.METHODS if method.command]
    assert len(set(commands)) == len(commands)
