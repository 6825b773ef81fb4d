"""Results look like results, in a terminal and in a notebook."""

import numpy as np

import empirisk as er

X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)


def test_a_certificate_is_short():
    certificate = er.LogisticRegression().fit(X, Y).certificate_
    assert repr(certificate).startswith("Certificate(converged, relative gap ")
    assert "\n" not in repr(certificate)
    assert len(repr(certificate)) < 100
    assert "<td>lower bound</td>" in certificate._repr_html_()


def test_evaluations_and_comparisons_are_tables():
    found = er.evaluate(er.NearestCentroid(), X, Y, cv=3)
    page = found._repr_html_()
    assert page.startswith("<b>NearestCentroid, 3 splits</b><table>")
    assert page.count("<tr>") == len(found.scores) + 1
    compared = er.compare({"a & b": er.NearestCentroid(), "c": er.LogisticRegression()}, X, Y, cv=3, repeats=1)
    assert "<td>a &amp; b</td>" in compared._repr_html_()
    assert str(compared.differences[0]) in compared._repr_html_().replace("&lt;", "<").replace("&amp;", "&")
