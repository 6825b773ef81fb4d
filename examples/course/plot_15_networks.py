r"""
15. Networks: from XOR to convolutions, tangent kernels and double descent
==========================================================================

A neuron is a linear machine with a bent output. Layers of neurons make a feature map that is *learned* with the
machine:

.. math:: \phi_W(x) = \sigma(W_L^\top \cdots \sigma(W_1^\top x) \cdots)

.. math:: \min_{w, b, W} \tfrac12 \|w\|^2 + \tfrac12 \sum_l \|W_l\|_F^2
          + C \sum_i \ell(y_i, \langle w, \phi_W(x_i) \rangle + b)

In the library that is one word, ``features=er.Network([...])``. This lesson does by hand what stands behind it: forward
and backward propagation, convolution, batch normalisation. Then it looks at what wide networks do: why they are easy to
train, what the tangent kernel says about them, and why more units can make the error smaller again.

About fifteen minutes. You need :doc:`lesson 1 <plot_01_equation>`, derivatives, and the extra ``nets``.
"""

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits

import empirisk as er
from empirisk.studio.playground.address import link

rng = np.random.default_rng(0)

# %%
# One neuron is a linear machine
# ------------------------------
# With a sigmoid at its output, 1/(1 + exp(-u)), and the cross-entropy as its loss, a single neuron is logistic
# regression. On two digits it makes no training error, which says little about 64 weights and 80 rows; rows held out
# say more.

images, digit = load_digits(return_X_y=True)
pair = np.isin(digit, (3, 8))
two, which = images[pair] / 16, (digit[pair] == 8).astype(int)
neuron = er.LogisticRegression().fit(two[:80], which[:80])
assert neuron.score(two[:80], which[:80]) == 1.0
assert 0.85 < neuron.score(two[80:], which[80:]) < 1.0

# %%
# XOR needs a hidden layer
# ------------------------
# No line parts (0, 0) and (1, 1) from (0, 1) and (1, 0). Two hidden units do it: with :math:`h_1 =
# \operatorname{relu}(x_1 + x_2)` and :math:`h_2 = \operatorname{relu}(x_1 + x_2 - 1)`, the sign of :math:`h_1 - 2 h_2
# - 1/2` is right in all corners.

corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
xor = np.array([-1, 1, 1, -1])
total = corners.sum(axis=1)
assert np.array_equal(np.sign(np.maximum(total, 0) - 2 * np.maximum(total - 1, 0) - 0.5), xor)
assert er.LogisticRegression(C=1e3).fit(corners, xor).score(corners, xor) <= 0.75

by_hand = er.Network(
    [2], "relu", weights={"0.weight": np.ones((2, 2)), "0.bias": np.array([0.0, -1.0])}, freeze=True
).fit(corners)
assert np.allclose(by_hand.transform(corners), np.column_stack([np.maximum(total, 0), np.maximum(total - 1, 0)]))

# %%
# In general, a unit for every true row of the truth table, and an "or" of them, is a network for any function of k
# bits. It may need :math:`2^k` units: everything can be written down, not everything cheaply.

parity = [bin(number).count("1") % 2 == 1 for number in range(16)]
bits = np.array([[number >> shift & 1 for shift in (3, 2, 1, 0)] for number in range(16)], dtype=float)
network = er.nets.boolean_network(parity).fit(bits)
assert np.array_equal(network.transform(bits).ravel() > 0, parity)
assert network.weights_["0.weight"].shape == (4, 8)  # one unit for each of the eight true rows

# %%
# Learned from noisy corners the layer finds such a solution by itself. One unit is not enough, whatever its weights.

signs = rng.choice([-1.0, 1.0], size=(200, 2))
cloud, label = signs + 0.2 * rng.normal(size=(200, 2)), (signs.prod(axis=1) > 0).astype(int)


def learned(width):
    """The four clouds, by a network with one hidden layer."""
    layer = er.Network([width], "tanh", decay=0.01, n_init=3, random_state=1)
    return er.LogisticRegression(C=10.0, features=layer).fit(cloud, label)


machines = {width: learned(width) for width in (1, 2, 4)}
assert machines[1].score(cloud, label) < 0.9
assert machines[4].score(cloud, label) > 0.99
er.plots.slider(lambda width: er.plots.regions(machines[width], cloud, label), width=list(machines))

# %%
# In the playground of :doc:`the studio </studio>`, take the data *XOR*, features *network*, layers ``1``, ``2`` or
# ``4``, and press play: the border is shown after every few epochs.

link(cloud, label, loss="logistic", features="network", layers="4", C=10.0)

# %%
# What each hidden unit sees is a half-plane with a soft edge; the last layer adds them. On the left the same machine
# as a graph: two inputs, four units, one answer. Lines are weights, and everything the machine knows is in them.

figure = Figure(figsize=(11, 5.2), layout="constrained")
places = figure.subplot_mosaic([["graph", "0", "1"], ["graph", "2", "3"]], width_ratios=[1.5, 1, 1])
er.plots.network(machines[4], axes=places["graph"])
er.plots.hidden_units(machines[4], cloud, label, axes=[places[name] for name in "0123"])
figure

# %%
# Forward, and backward
# ---------------------
# The gradient with respect to all weights costs about as much as two forward passes. Going forward, keep the input
# :math:`v_{l-1}` and the potential :math:`u_l = W_l^\top v_{l-1}` of every layer. Going backward, delta is the
# derivative of the loss in the potentials of a layer; then
#
# .. math:: \frac{\partial \ell}{\partial W_l} = v_{l-1}\, \delta_l^\top, \qquad
#           \delta_{l-1} = (W_l \delta_l) \odot \sigma'(u_{l-1})
#
# So a layer's gradient has its *input*, and the derivative of the *loss* starts it all.


def forward(x, weights):
    """Inputs of all layers and their potentials; the last layer is linear."""
    inputs, potentials = [x], []
    for number, W in enumerate(weights):
        potentials.append(W.T @ inputs[-1])
        inputs.append(potentials[-1] if number == len(weights) - 1 else np.maximum(potentials[-1], 0))
    return inputs, potentials


def backward(x, y, weights):
    """The gradients of log(1 + exp(-y f)) for one row."""
    inputs, potentials = forward(x, weights)
    delta = -y / (1 + np.exp(y * potentials[-1]))
    gradients = []
    for number in range(len(weights) - 1, -1, -1):
        gradients.insert(0, np.outer(inputs[number], delta))
        if number:
            delta = weights[number] @ delta * (potentials[number - 1] > 0)
    return gradients


def loss(x, y, weights):
    """log(1 + exp(-y f))."""
    return float(np.log1p(np.exp(-y * forward(x, weights)[1][-1])).sum())


weights = [rng.normal(size=shape) for shape in ((3, 5), (5, 4), (4, 1))]
x, y = rng.normal(size=3), 1.0
for W, gradient in zip(weights, backward(x, y, weights), strict=True):
    for place in np.ndindex(W.shape):
        kept, step = W[place], 1e-6
        W[place] = kept + step
        above = loss(x, y, weights)
        W[place] = kept - step
        below = loss(x, y, weights)
        W[place] = kept
        assert np.isclose(gradient[place], (above - below) / (2 * step), atol=1e-6)

# %%
# In a chain of neurons with weight w the gradient of the first is a product of all later factors
# :math:`w\, \sigma'(u)`. If they are below one it *vanishes*, above one it *explodes*. The slope of the sigmoid is at
# most 1/4, and that of relu is one or zero, which is why relu made deep networks trainable.

depth = 20
slope_of_sigmoid = 0.25
assert (1.0 * slope_of_sigmoid) ** depth < 1e-12
assert 1.0**depth == 1.0 < 1.5**depth / 3000

# %%
# A sum of enough sigmoids comes as close to any continuous function as one likes. To see why, put sigmoids side by
# side along the line, as soft steps, and let the last layer choose how far each goes up or down. One step is one
# step; twelve follow a wave. (Training would place the steps as well, and needs fewer.) On the left are the usual
# activations.

line = np.linspace(-3, 3, 60)
wave = np.sin(2 * line)
fits, errors = {}, []
for width in (1, 3, 12):
    places = np.linspace(-3, 3, width + 2)[1:-1]
    steps = {"0.weight": np.full((1, width), 2.0), "0.bias": -2.0 * places}
    units = er.Network([width], "sigmoid", weights=steps, freeze=True)
    fits[f"{width} sigmoid{'s' * (width > 1)}"] = machine = er.Ridge(C=1e4, features=units).fit(line[:, None], wave)
    errors.append(np.max(np.abs(machine.predict(line[:, None]) - wave)))
assert errors[0] > errors[1] > errors[2]
assert errors[2] < 0.05
figure = Figure(figsize=(11.5, 4.4), layout="constrained")
left, right = figure.subplots(1, 2)
er.plots.activations(["linear", "relu", "sigmoid", "tanh"], axes=left)
er.plots.regression(fits, line, wave, axes=right)
figure

# %%
# Convolutions
# ------------
# In an image near pixels belong together, and an edge is an edge wherever it stands. A convolutional layer has small
# filters that slide over the image, the same weights everywhere. With input size i, filter size g, padding p and
# stride s the output has
#
# .. math:: o = \left\lfloor \frac{i - g + 2p}{s} \right\rfloor + 1
#
# places along an axis. The number of channels c and of filters f do not appear: a filter always covers all channels,
# and the number of filters is the depth of the output. One filter has :math:`g^2 c` weights; a dense unit on a 28 x
# 28 image has 784, a 5 x 5 filter 25.

assert er.nets.Conv(4, 5, stride=2).output((28, 28, 3)) == (12, 12, 4)
assert (28 - 5) // 2 + 1 == 12
assert er.nets.Conv(1, 3, padding=1).output((28, 28, 1)) == er.nets.Conv(1, 5, padding=2).output((28, 28, 1))

# %%
# The last line answers a question that comes up when filters of two sizes are wanted in one layer: their outputs fit
# side by side if each is padded by half its size. The formula is also what one needs to see that a stack of layers
# ends in a size that is still there. AlexNet, the network that began the deep decade, on images of 227 pixels:

size, sizes = 227, []
for filter_size, padding, stride in (
    (11, 0, 4),
    (3, 0, 2),
    (5, 2, 1),
    (3, 0, 2),
    (3, 1, 1),
    (3, 1, 1),
    (3, 1, 1),
    (3, 0, 2),
):
    size = (size - filter_size + 2 * padding) // stride + 1
    sizes.append(size)
assert sizes == [55, 27, 27, 13, 13, 13, 13, 6]

# %%
# A filter that sums to zero answers where brightness changes. Weights that are shared make a dense layer with the same
# answers, mostly zeros, and most of the rest equal:

picture = images[3].reshape(8, 8)
kinds = np.stack(
    [
        [[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]],  # edges: the Laplace filter
        [[-1.0, -1.0, -1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]],  # brighter below than above
        [[-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]],  # brighter on the right
        np.full((3, 3), 1 / 9),  # a blur
    ]
)
layer = er.nets.Conv(4, 3, activation="linear")
first = {"0.weight": kinds.transpose(1, 2, 0)[:, :, None, :], "0.bias": np.zeros(4)}
filters = er.Network([layer], shape=(8, 8, 1), weights=first, freeze=True).fit(images)
edges = np.array([[np.sum(picture[i : i + 3, j : j + 3] * kinds[0]) for j in range(6)] for i in range(6)])
assert np.allclose(filters.transform(images[3:4]).reshape(6, 6, 4)[:, :, 0], edges, atol=1e-4)
dense = np.array([filters.transform(unit[None]).reshape(36, 4) for unit in np.eye(64)])  # pixels x places x filters
assert np.count_nonzero(dense[:, :, 0], axis=0).max() == 5  # of 64
er.plots.feature_maps(filters, images[3])

# %%
# Pooling keeps one number of every small square, its largest or its mean:

square = np.array([[1.0, 3.0, 2.0, 0.0], [5.0, 7.0, 4.0, 2.0], [0.0, 1.0, 9.0, 8.0], [2.0, 1.0, 7.0, 4.0]])
blocks = square.reshape(2, 2, 2, 2).swapaxes(1, 2).reshape(2, 2, 4)
for layer, expected in ((er.nets.MaxPool(), blocks.max(axis=2)), (er.nets.MeanPool(), blocks.mean(axis=2))):
    pooled = er.Network([layer], shape=(4, 4, 1)).fit(square.reshape(1, 16)).transform(square.reshape(1, 16))
    assert np.allclose(pooled.reshape(2, 2), expected)

# %%
# Against overfitting
# -------------------
# Weight decay is the penalty of the equation. *Early stopping* watches rows held out (``validation_fraction=``).
# *Dropout* hides random units in every step, so that no unit relies on another; those that stay are divided by the
# share that stays. *Augmentation* trains on shifted or noisy copies. *Transfer* starts from weights learned elsewhere
# (``weights=``, ``freeze=``). *Batch normalisation* subtracts the mean of a unit over the batch and divides by its
# *standard deviation*, with a small floor; for prediction it keeps running moments, since a single row has no batch.

batch = rng.normal(3.0, 5.0, size=256)
normalised = (batch - batch.mean()) / np.sqrt(batch.var() + 1e-5)
assert abs(normalised.mean()) < 1e-9
assert abs(normalised.std() - 1) < 1e-4
assert abs(((batch - batch.mean()) / batch.var()).std() - 1) > 0.5  # the variance is the wrong divisor

kept = rng.uniform(size=(20_000, 1)) > 0.5
assert abs(np.mean(kept / 0.5 * 3.0) - 3.0) < 0.1  # dropout leaves the mean as it is

# %%
# Wide networks move little
# -------------------------
# Train the four clouds by gradient descent with more and more hidden units. The usual scale of first weights is one
# over the root of a unit's inputs: 1 for the hidden layer, 1/sqrt(width) for the last one. Then every unit has a
# small part in the answer, and the wider the network, the less each weight has to move.


def drift(width, hidden_scale=1.0, steps=300, rate=0.1):
    """How far the hidden weights go, as a share of their first size, and the errors at the end."""
    random = np.random.default_rng(0)
    W, b = (hidden_scale * random.normal(size=shape) for shape in ((2, width), width))
    w, c = random.normal(size=width) / np.sqrt(width), 0.0
    first = W.copy()
    for _ in range(steps):
        u = cloud @ W + b
        v = np.maximum(u, 0)
        slope = (1 / (1 + np.exp(-(v @ w + c))) - label) / len(label)
        back = np.outer(slope, w) * (u > 0)
        w, c = w - rate * v.T @ slope, c - rate * slope.sum()
        W, b = W - rate * cloud.T @ back, b - rate * back.sum(axis=0)
    wrong = np.mean((np.maximum(cloud @ W + b, 0) @ w + c > 0) != label)
    return np.linalg.norm(W - first) / np.linalg.norm(first), wrong


moved = {width: drift(width) for width in (8, 32, 128, 512)}
assert moved[512][0] < moved[128][0] < moved[32][0] < moved[8][0]
assert moved[512][1] == 0
print({width: round(float(far), 3) for width, (far, _) in moved.items()})

# %%
# The scale matters. If the hidden weights shrink as :math:`1 / \sqrt{\text{width}}` too, the answer begins at zero, and
# all weights have to travel to get away from there, in wide networks as in narrow ones.

travelled = [drift(width, hidden_scale=1 / np.sqrt(width))[0] for width in (32, 512)]
assert min(travelled) > 1
assert travelled[1] > 0.7 * travelled[0]

# %%
# If weights hardly move, the network is nearly linear *in its weights*:
#
# .. math:: f(x, W) \approx f(x, W_0) + \langle \nabla_W f(x, W_0),\, W - W_0 \rangle .
#
# That is a linear machine whose features are the gradients of the *output* at the first weights, and its
# kernel is the *tangent kernel*. It can stand in the slot ``features=`` as any other kernel.

tangent = er.kernels.Tangent(er.Network([64], random_state=0))
lazy = er.SVM(C=10.0, features=tangent).fit(cloud, label)
assert lazy.score(cloud, label) > 0.98
assert np.linalg.eigvalsh(tangent(cloud[:30])).min() > -1e-6

# %%
# Most weights are not needed in the end. The *lottery ticket* experiment trains, drops the smallest half of the
# weights, puts those that are left back to their first values, and trains again. A quarter of the network often does
# as well. The picture has the machine with the tangent kernel on the left, and the tickets on the right.

found = er.nets.lottery_tickets(
    er.LogisticRegression(C=10.0, features=er.Network([32], epochs=60, n_init=1, random_state=0)),
    cloud[:150], label[:150], cloud[150:], label[150:], rounds=4,
)  # fmt: skip
assert found.kept[2] == 0.25
assert found.scores[2] > 0.95
assert found.scores[-1] <= found.scores[0]
figure = Figure(figsize=(11, 4.4), layout="constrained")
left, right = figure.subplots(1, 2)
er.plots.regions(lazy, cloud, label, axes=left)
er.plots.tickets(found, axes=right)
figure

# %%
# Double descent
# --------------
# Do more units overfit more? Take random hidden units, and the least-squares solution of smallest norm on them, with
# noisy clouds. As units approach the number of rows, the error on new rows explodes: there is exactly one solution
# that fits all rows, and it is wild. With still more units there are many, and the smallest of them is smooth again.

noisy_signs, new_signs = rng.choice([-1.0, 1.0], size=(200, 2)), rng.choice([-1.0, 1.0], size=(1000, 2))
noisy, new = noisy_signs + 0.7 * rng.normal(size=(200, 2)), new_signs + 0.7 * rng.normal(size=(1000, 2))
curve = er.nets.double_descent(
    noisy,
    noisy_signs.prod(axis=1),
    new,
    new_signs.prod(axis=1),
    [5, 10, 20, 50, 100, 150, 200, 250, 400, 800, 2000],
    repeats=3,
)
peak = curve.widths[curve.test.argmax()]
assert 150 <= peak <= 400
assert curve.training[-1] < 1e-6
assert curve.test[-1] < curve.test.max() / 4
assert curve.test[-1] < 1.2 * curve.test[curve.widths <= 100].min()
er.plots.widths(curve)

# %%
# Exercises
# ---------
#
# .. admonition:: Exercise 15.1
#
#    A layer has 3 x 3 filters, padding 1 and stride 2, on 32 x 32 images. How large is the output? After how many
#    such layers is one pixel left?
#
# .. solution::
#
# floor((32 - 3 + 2)/2) + 1 = 16: every layer halves, so five layers lead from 32 to 1.

shape, layers = (32, 32, 1), 0
while shape[0] > 1:
    shape, layers = er.nets.Conv(1, 3, stride=2, padding=1).output(shape), layers + 1
assert layers == 5

# %%
# .. end-solution::
#
# .. admonition:: Exercise 15.2
#
#    How many weights has a convolutional layer with 16 filters of 5 x 5 on three channels, and how many would a
#    dense layer with the same outputs have, on 32 x 32 images without padding?
#
# .. solution::
#
# 5 * 5 * 3 weights for each filter, and 16 biases: 1216. The output has 28 x 28 x 16 numbers, the input 3072: a dense
# layer would have 38.5 million.

assert 16 * (5 * 5 * 3) + 16 == 1216
assert er.nets.Conv(16, 5).output((32, 32, 3)) == (28, 28, 16)
assert 28 * 28 * 16 * 32 * 32 * 3 == 38_535_168

# %%
# .. end-solution::
#
# .. admonition:: Exercise 15.3
#
#    Start a network at the solution of another (``weights=``) and train for no step: it must answer alike.
#
# .. solution::
#
# Frozen layers are a fixed map, and the head is solved to its optimum: the same problem, the same answer.

trained = machines[4].features_
again = er.Network([4], "tanh", weights=trained.weights_, freeze=True)
copied = er.LogisticRegression(C=10.0, features=again).fit(cloud, label)
assert np.array_equal(copied.predict(cloud), machines[4].predict(cloud))

# %%
# .. end-solution::
#
# Where to read on
# ----------------
# :class:`empirisk.Network`, :class:`empirisk.nets.Conv`, :class:`empirisk.nets.BatchNorm`,
# :class:`empirisk.nets.Dropout`, :func:`empirisk.nets.read_weights`, :class:`empirisk.kernels.Tangent`,
# :func:`empirisk.nets.double_descent`, :func:`empirisk.nets.lottery_tickets`, :func:`empirisk.nets.boolean_network`.
