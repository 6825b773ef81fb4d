"""A bound on the penalty in place of C."""

from empirisk import state
from empirisk.parts import Part


class Constraint(Part):
    """In place of C:  minimise  sum_i c_i loss(y_i, f(x_i))  subject to  R(w) <= radius.

    The answer is that of  R(w) + C sum_i c_i loss(y_i, f(x_i))  at one C, which the fit looks for along warm-started
    solutions and keeps as ``C_``. The certificate is that of the constrained problem: ``primal`` is the sum of losses,
    ``dual`` the bound of Lagrangian duality with the multiplier 1/C. Where a machine learns several functions, one for
    each class or target, R is summed over them all.

    Parameters
    ----------
    radius : float, zero or positive
        The largest R(w). With the l2 penalty R is half of the squared norm: ``Constraint(t**2 / 2)`` is |w| <= t; with
        l1, ``Constraint(t)`` is |w|_1 <= t. Where the best w of all is inside, the constraint changes nothing, and
        ``C_`` is infinite or so large that more would not matter; 0 leaves a constant.

    Examples
    --------
    >>> X, y = np.eye(2), [3.0, 4.0]
    >>> machine = er.Ridge(C=er.Constraint(2.0), fit_intercept=False).fit(X, y)  # |w| <= 2
    >>> machine.coef_.round(4), round(machine.C_, 4)
    (array([1.2, 1.6]), 0.3333)
    >>> er.Ridge(C=machine.C_, fit_intercept=False).fit(X, y).coef_.round(4)
    array([1.2, 1.6])
    >>> er.Lasso(C=er.Constraint(2.0), fit_intercept=False).fit(X, y).coef_.round(4)
    array([0.5, 1.5])
    """

    _state = state.State(radius=state.number(0))

    def __init__(self, radius: float = 1.0):
        self.radius = radius

    @property
    def limit(self) -> float:
        """The radius as a number."""
        return self._number("radius", "a finite number, zero or positive; it bounds the penalty R(w)", 0)
