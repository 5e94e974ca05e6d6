from dataclasses import asdict, replace

import numba
import numpy as np
import pytest

import dpals
from dpals.kernels.target import Target, check_same, target

OURS = target()


def test_it_says_what_computes():
    assert (OURS.dpals, OURS.numpy, OURS.numba) == (dpals.__version__, np.__version__, numba.__version__)
    assert Target(**asdict(OURS)) == OURS
    assert all(isinstance(text, str) for text in asdict(OURS).values())


@pytest.mark.parametrize("name", ["family", "dpals", "numpy", "numba", "llvmlite"])
def test_rows_of_other_versions_and_families_are_refused(name):
    other = replace(OURS, **{name: "another"})
    with pytest.raises(dpals.InputError, match=f"{name}: .*another"):
        check_same([OURS, OURS, other])


@pytest.mark.parametrize("name", ["processor", "features", "blas", "scipy"])
def test_rows_of_other_processors_of_the_family_are_welcome(name):
    """test_processors.py shows that they have the same bits."""
    check_same([OURS, replace(OURS, **{name: "another"})])
    check_same([])
