"""Plots of curves."""

from dpals.audit.plots import Curve, draw_curves, svg_of

CURVES = (
    Curve("what the promise allows", "limit", (0.0, 0.5, 1.0), (0.0, 0.6, 1.0)),
    Curve("an attack", "attack", (0.0, 0.5, 1.0), (0.0, 0.55, 1.0)),
)


def test_curves_are_drawn_on_linear_and_on_logarithmic_axes():
    linear, logarithmic = draw_curves(CURVES).axes
    assert (linear.get_xscale(), logarithmic.get_xscale()) == ("linear", "log")
    for axes in (linear, logarithmic):
        assert {line.get_label() for line in axes.lines} == {"guessing", "what the promise allows", "an attack"}


def test_a_plot_is_a_picture_for_a_page():
    picture = svg_of(CURVES)
    assert picture.startswith("<svg")
    assert "an attack" in picture
