"""Classifiers with names: each a choice of loss and penalty in the equation."""

from empirisk.contract.compose import composed
from empirisk.machines.equation import Classifier


@composed({"loss": "hinge"})
class SVM(Classifier):
    """Support vector machine:  minimise  R(w) + C sum_i c_i max(0, 1 - y_i f(x_i)).

    ``C=inf`` is the hard margin, which raises `NotSeparable` where no hyperplane separates the classes. C is that of
    scikit-learn's ``SVC``. The parameters and attributes are those of `Classifier`, without ``loss``.

    Examples
    --------
    >>> machine = er.SVM(C=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> machine.predict([[0.2], [2.7]])
    array([0, 1])
    >>> machine.certificate_.relative_gap < 1e-6
    True
    """


@composed({"loss": "logistic"})
class LogisticRegression(Classifier):
    """Logistic regression:  minimise  R(w) + C sum_i c_i ln(1 + exp(-y_i f(x_i))), softmax for several classes.

    C is that of scikit-learn's ``LogisticRegression``. The parameters and attributes are those of `Classifier`, without
    ``loss``.

    Examples
    --------
    >>> machine = er.LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> machine.predict_proba([[1.5]]).round(3)
    array([[0.5, 0.5]])
    """


@composed({"loss": "squared"}, penalty="none")
class LeastSquaresClassifier(Classifier):
    """Least squares on labels -1 and +1:  minimise  R(w) + C sum_i c_i (1 - y_i f(x_i))^2, one machine per class.

    The parameters and attributes are those of `Classifier`, without ``loss``; the default penalty is "none".

    Examples
    --------
    >>> er.LeastSquaresClassifier().fit([[0.0], [1.0], [2.0], [3.0]], list("aabb")).predict([[0.4]])
    array(['a'], dtype='<U1')
    """
