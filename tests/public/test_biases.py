import numpy as np

from dpals.public.biases import shrunken_ratio


def test_is_the_posterior_mean_of_a_gaussian():
    """Against the average of biases drawn from the prior, given moments near the one observed."""
    rng = np.random.default_rng(0)
    weight, noise, prior = 3.0, 2.0, 0.7
    biases = rng.normal(0, prior, 2_000_000)
    moments = weight * biases + rng.normal(0, noise, biases.size)
    near = np.abs(moments - 1.5) < 0.02
    result = shrunken_ratio(np.array([1.5]), np.array([weight]), noise, prior)
    np.testing.assert_allclose(result, biases[near].mean(), atol=0.02)


def test_nothing_known_gives_zero_and_everything_known_the_ratio():
    result = shrunken_ratio(np.array([5.0, 5.0, 6.0]), np.array([0.0, -3.0, 1e6]), noise=1.0, prior=0.5)
    np.testing.assert_allclose(result, [0.0, 0.0, 6e-6], rtol=1e-9)
