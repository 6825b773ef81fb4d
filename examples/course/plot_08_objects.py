r"""
8. Strings and graphs
=====================

A kernel machine never looks at a row; it asks for similarities alone. So the rows may be words, molecules, people in a
network, or whole samples. All that is needed is a kernel on them. This lesson computes some by hand, and learns with
them.

About twelve minutes. You need :doc:`lesson 7 <plot_07_kernels>`.
"""

# %%
# Substrings
# ----------
# The *spectrum kernel* describes a text by how often each string of a given length occurs in it, and takes the inner
# product of these counts. It never lists all possible strings. Of length 2, "abab" has ab twice and ba once; "abc" has
# ab and bc once. Their similarity is 2 · 1 = 2.
import numpy as np
from matplotlib.figure import Figure

import empirisk as er

words = ["abab", "abc", "cab"]
spectrum = er.kernels.Spectrum(2)


def counts(text, length):
    """How often each substring occurs."""
    found = {}
    for start in range(len(text) - length + 1):
        piece = text[start : start + length]
        found[piece] = found.get(piece, 0) + 1
    return found


def by_hand(first, second, length):
    """The inner product of the counts."""
    one, two = counts(first, length), counts(second, length)
    return sum(number * two.get(piece, 0) for piece, number in one.items())


K = spectrum(words)
assert K[0, 1] == 2
assert all(K[i, j] == by_hand(a, b, 2) for i, a in enumerate(words) for j, b in enumerate(words))
print(K)

# %%
# Long texts have large counts. ``normalise=True`` divides by :math:`\sqrt{k(x, x)\, k(z, z)}`, so that each text has
# the similarity 1 to itself; ``blended=True`` counts all lengths up to the given one.
cosine = er.kernels.Spectrum(2, normalise=True)(words)
assert np.allclose(np.diag(cosine), 1)
assert np.isclose(cosine[0, 1], 2 / np.sqrt(5 * 2))
blended = er.kernels.Spectrum(2, blended=True)(words)
assert blended[0, 1] == by_hand("abab", "abc", 1) + by_hand("abab", "abc", 2)

# %%
# Words of two languages
# ----------------------
# Can a machine tell two made-up languages apart by their words alone? In one, the vowels of a word are all a and o, or
# all e and i, as in Finnish: this is *vowel harmony*. In the other they alternate. One vowel in ten breaks the rule.
# The machine gets a list of strings, and the kernel in ``features=``. Move the slider: pieces of two letters hold one
# vowel and say little; pieces of three hold two; long pieces occur once and say nothing again.
rng = np.random.default_rng(0)


def word(harmony):
    """Three to five syllables; from vowel to vowel the kind stays, or changes."""
    kind, letters = rng.integers(2), ""
    for _ in range(rng.integers(3, 6)):
        letters += rng.choice(list("ktm")) + rng.choice(list(("ao", "ei")[kind]))
        exception = rng.uniform() < 0.1
        kind = kind if harmony != exception else 1 - kind
    return letters


names = [word(True) for _ in range(150)] + [word(False) for _ in range(150)]
language = np.repeat(["harmony", "change"], 150)
mixed = rng.permutation(300)
learn, hold = mixed[:200], mixed[200:]


def right(kernel):
    """The share of held-out words whose language a machine finds."""
    machine = er.SVM(C=1.0, features=kernel).fit([names[k] for k in learn], language[learn])
    return machine.score([names[k] for k in hold], language[hold])


shares = {length: right(er.kernels.Spectrum(length, normalise=True)) for length in (1, 2, 3, 4, 5, 7)}
assert shares[3] > 0.85
assert shares[3] > shares[2] + 0.15
assert shares[3] > shares[7] + 0.15
print(names[:3], names[-3:])
print({length: f"{share:.0%}" for length, share in shares.items()})


def similar(length):
    """The Gram matrix of some of the words, ordered by language."""
    some = np.r_[0:30, 150:180]
    kernel = er.kernels.Spectrum(length, normalise=True)
    figure = er.plots.gram(kernel([names[k] for k in some]), y=language[some])
    figure.axes[0].set_title(
        f"pieces of {length}: {shares[length]:.0%} of held-out words right", loc="left", fontsize=11
    )
    return figure


er.plots.slider(similar, length=[1, 2, 3, 4, 5, 7])

# %%
# Subsequences with gaps
# ----------------------
# "cat" and "cart" have no string of three letters in common, but much else. The *subsequence kernel* lets letters
# stand apart: each common subsequence counts :math:`\text{decay}^{s + t}`, with the lengths s and t that it spans in
# both. "cat" and "car" have one of length 2, "ca", which spans 2 letters in each: :math:`\text{decay}^4`. "cat" has
# itself ca (2), at (2) and ct, which spans 3: :math:`2\, \text{decay}^4 + \text{decay}^6`. There are exponentially
# many subsequences; a table of :math:`|x| |z|` cells counts them all.
decay = 0.5
gappy = er.kernels.Subsequence(2, decay)
trio = ["cat", "car", "cart"]
K = gappy(trio)
assert np.isclose(K[0, 1], decay**4)
assert np.isclose(K[0, 0], 2 * decay**4 + decay**6)
# cat and cart: ca with 2 + 2, at with 2 + 3, ct with 3 + 4
assert np.isclose(K[0, 2], decay**4 + decay**5 + decay**7)
assert np.isclose(er.kernels.Spectrum(3)(["cat"], ["cart"]), 0).all()
print(er.kernels.Subsequence(2, decay, normalise=True)(trio).round(3))

# %%
# For the two languages a gap is what it takes: two vowels with a consonant between them are a subsequence of length 2.
# And everything of :doc:`lesson 7 <plot_07_kernels>` works: sums and products, checks, and the machines. Names are
# clustered, too, without ever being turned into numbers.
with_gaps = er.kernels.Subsequence(2, 0.6, normalise=True)
assert right(with_gaps) > 0.85
both = er.kernels.Spectrum(3, normalise=True) + with_gaps
assert er.kernels.check(both, names[:40])
found = er.evaluate(er.SVM(C=1.0, features=both), names, language, cv=5)
assert found.score.value > 0.85
print("sum of both kernels:", found.score)

items = ["kitten", "mitten", "sitting", "berlin", "merlin", "dublin", "tokyo", "kyoto"]
tree = er.Hierarchical("average", features=with_gaps).fit(items)
figure = er.plots.dendrogram(tree, n_clusters=3, names=items)
figure.axes[0].set_ylim(0, 1.7)  # room for the legend
figure

# %%
# Graphs
# ------
# Two graphs are similar if one finds the same on a walk through both. The *random walk kernel* counts pairs of walks
# with the same labels on the way, and a walk of length l counts :math:`\text{decay}^l`. Pairs of walks are walks in
# the *product graph*, whose nodes are pairs of nodes, so that the sum over all lengths is :math:`1'(I - \text{decay}\,
# A)^{-1} 1`. It is finite only for a small decay.
edge = ([(0, 1)], None)
triangle = ([(0, 1), (1, 2), (0, 2)], None)
path = ([(0, 1), (1, 2)], None)


def adjacency(graph, nodes):
    """The matrix of a graph."""
    A = np.zeros((nodes, nodes))
    for u, v in graph[0]:
        A[u, v] = A[v, u] = 1
    return A


decay = 0.1
product = np.kron(adjacency(edge, 2), adjacency(triangle, 3))  # the product graph
walks = np.linalg.inv(np.eye(6) - decay * product).sum()
K = er.kernels.RandomWalk(decay)([edge, triangle])
assert np.isclose(K[0, 1], walks)
assert np.isclose(K[0, 1], 6 / (1 - 2 * decay))  # each of 6 pairs has 2 ways to go on: 6 sum_l (2 decay)^l
two_steps = er.kernels.RandomWalk(decay, length=2)([edge], [triangle])[0, 0]
assert np.isclose(two_steps, 6 * (1 + 0.2 + 0.04))
try:
    er.kernels.RandomWalk(0.5)([triangle])
    raise AssertionError("this sum is infinite")
except er.errors.EmpiriskError as refusal:
    print(refusal)

# %%
# The *Weisfeiler-Lehman kernel* is faster and sees more. In each round every node takes as its new label its own label
# and those of its neighbours; the kernel counts nodes with the same label, over all rounds. Without labels all nodes
# begin alike. A path of three nodes and a triangle: in round 0, 3 · 3 pairs are alike; after one round the path has
# two ends and one middle with two neighbours, as each node of the triangle has: 1 · 3 more.
wl = er.kernels.WeisfeilerLehman(1)([path, triangle])
assert wl[0, 1] == 3 * 3 + 1 * 3
assert wl[0, 0] == 3 * 3 + 2 * 2 + 1 * 1
assert wl[1, 1] == 3 * 3 + 3 * 3


def ring(nodes):
    """A ring with a few loose ends."""
    edges = [(k, (k + 1) % nodes) for k in range(nodes)]
    ends = [(int(rng.integers(nodes)), nodes + k) for k in range(rng.integers(1, 4))]
    return (edges + ends, None)


def branched(nodes):
    """A tree: each node hangs on an earlier one."""
    return ([(int(rng.integers(k)), k) for k in range(1, nodes)], None)


graphs = [ring(rng.integers(5, 9)) for _ in range(40)] + [branched(rng.integers(7, 12)) for _ in range(40)]
kind = np.repeat(["ring", "tree"], 40)
figure = Figure(figsize=(9.6, 2.6), layout="constrained")
panels = figure.subplots(1, 4)
for axes, k in zip(panels, (0, 1, 40, 41), strict=True):
    nodes = 1 + max(max(pair) for pair in graphs[k][0])
    links = adjacency(graphs[k], nodes)
    laplacian = np.diag(links.sum(axis=1)) - links
    places = np.linalg.eigh(laplacian)[1][:, 1:3]  # two smooth functions on the graph as coordinates
    for u, v in graphs[k][0]:
        axes.plot(*places[[u, v]].T, color="0.6", lw=1.2, zorder=1)
    axes.scatter(*places.T, s=30, color="#0072B2" if kind[k] == "ring" else "#E69F00", edgecolors="black", zorder=2)
    axes.set(xticks=[], yticks=[])
    axes.set_title(kind[k], loc="left", fontsize=11)
result = er.evaluate(er.SVM(C=1.0, features=er.kernels.WeisfeilerLehman(2, normalise=True)), graphs, kind, cv=5)
assert result.score.value > 0.85
print("rings and trees:", result.score)
figure

# %%
# Nodes of one graph
# ------------------
# In a network of people the items are the nodes. Put heat on one node and let it flow for a time :math:`\beta`: the
# *diffusion kernel* is :math:`K = e^{-\beta L}` with the Laplacian L = D - A. (With the sign of L turned round it is
# written :math:`e^{\beta L}`.) Two nodes are similar if heat gets from one to the other by many short ways. On a path
# of three nodes L has the eigenvalues 0, 1 and 3, which gives the numbers by hand.
line = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
K = er.kernels.Diffusion(line, beta=0.5)([0, 1, 2])
heat = np.exp(-0.5 * np.array([0.0, 1.0, 3.0]))
assert np.isclose(K[0, 0], heat[0] / 3 + heat[1] / 2 + heat[2] / 6)
assert np.isclose(K[0, 2], heat[0] / 3 - heat[1] / 2 + heat[2] / 6)
assert np.allclose(K.sum(axis=1), 1)  # no heat is lost

# %%
# Two circles of friends with a few links between them. Four people have said how they will vote; heat carries it to
# the others.
people = 40
circle = np.repeat([0, 1], 20)
links = (rng.uniform(size=(people, people)) < np.where(circle[:, None] == circle, 0.25, 0.02)).astype(float)
links = np.triu(links, 1)
links = links + links.T
asked = [3, 12, 25, 33]
assert links.sum(axis=1).min() > 0  # nobody is alone
kernel = er.kernels.Diffusion(links, beta=2.0)
voter = er.SVM(C=100.0, features=kernel).fit(asked, circle[asked])
assert np.mean(voter.predict(list(range(people))) == circle) >= 0.85
er.plots.gram(
    er.kernels.Diffusion(links, beta=2.0, normalise=True)(list(range(people))),
    y=np.where(circle == 0, "first circle", "second circle"),
)

# %%
# Samples as items
# ----------------
# An item may be a whole sample: the cells of a patient, the pixels of a picture. Two kernels compare distributions by
# their samples. The *mean embedding* is the mean of k over all pairs, one point from each; with the linear kernel it
# is the inner product of the means. The *expected likelihood* is :math:`\int p(x)\, q(x)\, dx` of two fitted
# Gaussians, which is again a Gaussian of the difference of their means.
first, second = rng.normal(0, 1, (30, 1)), rng.normal(1, 2, (40, 1))
point = er.kernels.Gaussian(1.0)
K = er.kernels.MeanEmbedding(point)([first, second])
assert np.isclose(K[0, 1], point(first, second).mean())
linear = er.kernels.MeanEmbedding(er.kernels.Linear())([first], [second])
assert np.isclose(linear[0, 0], first.mean() * second.mean())

known = [([0.0], [[1.0]]), ([3.0], [[4.0]])]  # means and covariances
overlap = er.kernels.ExpectedLikelihood(ridge=1e-9)(known)
variance = 1.0 + 4.0
assert np.isclose(overlap[0, 1], np.exp(-(3.0**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance))

narrow = [rng.normal(0, 1.0, (25, 2)) for _ in range(30)]
broad = [rng.normal(0, 1.8, (25, 2)) for _ in range(30)]
spread = np.repeat(["narrow", "broad"], 30)
groups = er.evaluate(
    er.SVM(C=10.0, features=er.kernels.MeanEmbedding(point, normalise=True)), narrow + broad, spread, cv=5
)
assert groups.score.value > 0.85  # the means are the same, the spreads are not
print("narrow and broad samples:", groups.score)

# %%
# A kernel of your own
# --------------------
# Any function of two items will do, if it is a kernel; on small data the machine tests it. Two sets are similar by how
# much they have in common. The share :math:`|A \cap B| / |A \cup B|` is a kernel, and the length of the longest common
# piece is none.


def share(first, second):
    """Of the letters of two words, how many they have in common."""
    return len(set(first) & set(second)) / len(set(first) | set(second))


def longest(first, second):
    """The length of the longest piece that two words have in common."""
    pieces = (first[i:j] for i in range(len(first)) for j in range(i + 1, len(first) + 1))
    return float(max((len(piece) for piece in pieces if piece in second), default=0))


assert er.kernels.check(share, names[:40])
print(er.kernels.check(longest, ["a", "b", "aa", "ab", "ba", "bb", "aab", "aba", "abb", "baa", "bab", "bba"]))
assert not er.kernels.check(longest, ["a", "b", "aa", "ab", "ba", "bb", "aab", "aba", "abb", "baa", "bab", "bba"])
print(f"by sets of letters: {right(share):.0%}")
assert right(share) > 0.6

# %%
# Exercises
# ---------
# Try each before you open its solution.

# %%
# .. admonition:: Exercise 8.1
#
#    Compute the spectrum kernel of length 2 of "banana" with itself and with "ananas".
#
# .. solution::
#
# banana: ba 1, an 2, na 2. ananas: an 2, na 2, as 1. So 1 + 4 + 4 = 9 and 4 + 4 = 8.
fruit = er.kernels.Spectrum(2)(["banana", "ananas"])
assert fruit.tolist() == [[9, 8], [8, 9]]

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 8.2
#
#    What becomes of the diffusion kernel for :math:`\beta = 0` and for :math:`\beta \to \infty` on a connected graph?
#
# .. solution::
#
# K = I: no heat has moved. And 1/n everywhere: it is spread evenly.
assert np.allclose(er.kernels.Diffusion(line, beta=0.0)([0, 1, 2]), np.eye(3))
assert np.allclose(er.kernels.Diffusion(line, beta=50.0)([0, 1, 2]), 1 / 3)

# %%
# .. end-solution::

# %%
# .. admonition:: Exercise 8.3
#
#    A ring of six nodes, and two triangles. Does the Weisfeiler-Lehman kernel tell them apart? Does the random walk
#    kernel?
#
# .. solution::
#
# Neither does: every node has two neighbours, in every round. Every walk has two ways to go on at each step, in both.
ring_of_six = ([(k, (k + 1) % 6) for k in range(6)], None)
two_triangles = ([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)], None)
for kernel in (er.kernels.WeisfeilerLehman(5), er.kernels.RandomWalk(0.1)):
    K = kernel([ring_of_six, two_triangles])
    assert np.allclose(K, K[0, 0])

# %%
# .. end-solution::

# %%
# Where to read on
# ----------------
# - :class:`empirisk.kernels.Spectrum`, :class:`empirisk.kernels.Subsequence`, :class:`empirisk.kernels.RandomWalk`,
#   :class:`empirisk.kernels.WeisfeilerLehman`, :class:`empirisk.kernels.Diffusion`.
# - :class:`empirisk.kernels.MeanEmbedding`, :class:`empirisk.kernels.ExpectedLikelihood`,
#   :class:`empirisk.kernels.Callable`, :func:`empirisk.kernels.check`.
# - All of these need the whole Gram matrix; what to do with many rows is lesson 9.
