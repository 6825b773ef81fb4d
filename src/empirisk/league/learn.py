"""`learn`: the whole job as one call."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec

from empirisk.errors import UnknownParameter, did_you_mean, listed
from empirisk.league.jobs import Job
from empirisk.league.request import Request
from empirisk.league.result import Learned

Options = ParamSpec("Options")


def _with_options_of(
    request: Callable[Options, Request],
) -> Callable[[Callable[[Request], Learned]], Callable[Options, Learned]]:
    """Give a function of a request the arguments that the request is made of, which are written there alone."""

    def decorate(function: Callable[[Request], Learned]) -> Callable[Options, Learned]:
        @wraps(function)
        def call(*args: Options.args, **options: Options.kwargs) -> Learned:
            unknown = [name for name in options if name not in known]
            if unknown:
                hint = did_you_mean(unknown[0], known, f"choose from {listed(known)}.")
                raise UnknownParameter(f"learn has no option {unknown[0]!r}; {hint}")
            return function(request(*args, **options))

        signature: Any = inspect.signature(request).replace(return_annotation=Learned)
        known = list(signature.parameters)
        vars(call)["__signature__"] = signature
        return call

    return decorate


@_with_options_of(Request)
def learn(request: Request) -> Learned:
    """Train, select, test honestly, and write a model and a report.

    The test part is held out first. On the rest, kinds of machines, and a vote of the best, compete on the same folds,
    with all that is learned from data learned inside the folds; the simplest machine that is not worse than the best by
    more than one standard error of their difference, nor by more than 1 % of what the best gains over guessing, is
    refitted and tested once (``prefer="best"``: the best).

    Parameters
    ----------
    data : path, name of a bundled table, frame, or matrix X
        The table.
    target : str, or array y
        The column to predict, or its values; bundled tables know their own.
    metric : str, optional
        Such as "auc", "f1", "logloss", "rmse" or "mae", or a scorer's name of scikit-learn; by default the root mean
        squared error of numbers, and accuracy of classes, or average precision where one of them is rare.
    test : float
        Share of the rows that are held out.
    folds : int, optional
        Number of folds of the contest; 5 by default, and 3 beyond 100 000 rows.
    groups, time_order : str, optional
        A column whose values stay on one side of every split; a column that orders the rows in time.
    machines : list of str, optional
        Which kinds compete, such as ["logistic", "forest"]; all by default.
    time : float or str, optional
        Seconds that all of it may take, or a time such as "30s" or "5m".
    balance : bool
        Whether classes count alike, however many rows they have.
    drop : list of str
        Columns to leave out.
    types : dict, optional
        What columns hold, where the guess is wrong: {"zip": "category"}, or number, boolean, date, text, several,
        sequence.
        Cells that are no such thing are missing.
    missing : list, optional
        Values that stand for a missing one in every column, such as ["ERR", -999].
    jobs : int, optional
        Threads.
    seed : int
        Same seed, same result.
    out : path, optional
        Writes ``<out>.model`` and ``<out>.report.html``; run again after it was killed, it goes on where it was.
    test_file : path or frame, optional
        Rows to test on, instead of a share of the table.
    prefer : {"simple", "best"}
        Whether the simplest machine that is as good as the best, but for chance, is chosen, or the best; ``price`` of
        the result tells what that costs on the folds.
    refit : bool
        Whether the final model learns from all rows, those of the test too. The scores are those of the one tested.
    force : bool
        Whether an earlier ``<out>.model`` may be replaced.
    header : bool
        Whether the first row of a text table names the columns; else they are column_1, column_2, ...
    listener : callable, optional
        Hears each event: a `Listener`, or any function of an event.

    Returns
    -------
    Learned

    Examples
    --------
    >>> found = er.learn("iris", machines=["logistic", "tree"])
    >>> found.winner
    'logistic'
    >>> found.test.scores[0].value > 0.9
    True
    >>> found.predict(er.tables.read("iris").head(2))
    array(['setosa', 'setosa'], dtype='<U10')
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]] * 20, [1.0, 2.5, 4.0] * 20
    >>> er.learn(X, y, machines=["ridge"]).predict([[3.0, 0.0]]).round(1)
    array([5.5])
    """
    return Job(request).run()
