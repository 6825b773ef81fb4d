"""Views of networks: what is drawn is what the network holds."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import empirisk as er
from empirisk.errors import EmpiriskError
from tests.plots.look import assert_readable, legend, title

pytestmark = pytest.mark.row("P1")
XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])


@pytest.fixture(scope="module")
def images():
    network = er.Network.convolutional((4,), dense=(3,), shape=(6, 6, 1), random_state=0)
    return network.fit(np.zeros((2, 36)))


@pytest.fixture(scope="module")
def xor():
    network = er.Network([4], "tanh", epochs=300, n_init=1, validation_fraction=0.0, look_every=50, random_state=0)
    return er.LogisticRegression(C=100.0, features=network).fit(*XOR)


def test_activations():
    figure = er.plots.activations()
    names = ["linear", "relu", "sigmoid", "tanh", "leaky_relu", "gelu", "softplus", "sign"]
    assert legend(figure.axes[0]) == names
    x, y = figure.axes[0].lines[1].get_data()
    np.testing.assert_allclose(y, np.maximum(x, 0))
    assert_readable(figure)


@pytest.mark.row("W3")
def test_filters_and_feature_maps(images):
    figure = er.plots.filters(images)
    np.testing.assert_allclose(figure.axes[2].images[0].get_array(), images.weights_["0.weight"][:, :, 0, 2])
    assert_readable(figure)
    image = np.random.default_rng(0).normal(size=36)
    figure = er.plots.feature_maps(images, image)
    np.testing.assert_allclose(figure.axes[1].images[0].get_array(), images.layer_outputs(image[None])[0][0, :, :, 1])
    assert_readable(figure)
    with pytest.raises(EmpiriskError, match="no filters"):
        er.plots.filters(images, layer=1)
    with pytest.raises(EmpiriskError, match="gives no images"):
        er.plots.feature_maps(images, image, layer=2)


def test_a_lone_picture_is_as_wide_as_its_title():
    network = er.Network([er.nets.Conv(1)], shape=(6, 6), random_state=0).fit(np.zeros((2, 36)))
    figure = er.plots.feature_maps(network, np.ones(36))
    figure.canvas.draw()
    assert figure._suptitle.get_window_extent().x1 <= figure.bbox.x1


@pytest.mark.row("W1")
def test_hidden_units_of_xor(xor):
    figure = er.plots.hidden_units(xor, *XOR)
    assert len(figure.axes) == 4
    picture = figure.axes[0].images[0]
    left, _, bottom, _ = picture.get_extent()
    corner = xor.features_.transform([[left, bottom]])[0, 0]
    assert picture.get_array()[0, 0] == pytest.approx(corner)
    assert_readable(figure)
    beside = Figure().subplots(1, 5)
    er.plots.hidden_units(xor, *XOR, axes=beside[1:])
    assert [len(one.collections) for one in beside] == [0, 2, 2, 2, 2]  # the rows, beside another picture
    with pytest.raises(EmpiriskError, match="two columns"):
        er.plots.hidden_units(xor, np.zeros((2, 3)))


@pytest.mark.row("W1")
def test_hidden_units_of_a_boolean_function():
    network = er.nets.boolean_network([False, True, True, False]).fit(XOR[0])
    figure = er.plots.hidden_units(network, *XOR)
    assert len(figure.axes) == 2
    assert set(np.unique(figure.axes[0].images[0].get_array())) == {-1.0, 1.0}
    assert_readable(figure)


@pytest.mark.row("W8")
def test_tangent():
    X = np.random.default_rng(0).normal(size=(10, 2))
    kernel = er.kernels.Tangent(er.Network([30], "linear", random_state=0))
    figure = er.plots.tangent(kernel, X)
    assert title(figure.axes[1]) == "Of 10 patterns on 10 rows the network is blind to 7"
    assert legend(figure.axes[1]) == ["seen", "blind"]
    influence = kernel.influence(X)
    longest = max(bar.get_width() for bar in figure.axes[0].patches)
    assert longest == pytest.approx(max(part.max() for part in influence.values()))
    assert_readable(figure)


def test_training_tickets_and_widths(xor):
    figure = er.plots.training(xor)
    assert title(figure.axes[0]) == "Training: finished after 300 steps"
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), xor.features_.history_["objective"])
    assert_readable(figure)
    kept, scores = np.array([1.0, 0.5, 0.25]), np.array([0.9, 0.9, 0.7])
    figure = er.plots.tickets(er.nets.Tickets(kept, scores, []))
    assert title(figure.axes[0]) == "Best with 0.5 of the weights: 0.9"
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["1", "0.5", "0.25"]
    assert_readable(figure)
    many = er.nets.Tickets(0.8 ** np.arange(20), np.linspace(0.9, 0.7, 20), [])
    figure = er.plots.tickets(many)
    assert title(figure.axes[0]) == "Best with all weights: 0.9"
    assert_readable(figure)
    curve = er.nets.WidthCurve(np.array([1, 10, 100]), np.array([0.5, 0.0, 0.0]), np.array([1.0, 5.0, 1.0]))
    figure = er.plots.widths(curve)
    assert "width 10" in title(figure.axes[0])
    assert_readable(figure)
    with pytest.raises(EmpiriskError, match="holds no fitted Network"):
        er.plots.training(er.SVM().fit(*XOR))
