"""Machines written as Python expressions, such as ``er.Classifier(loss="hinge")``, read without running any code.

The page's controls are written as such an expression, and so is the script that can be copied: the picture and the
script come from one text.
"""

import ast
import operator
from typing import Any

import empirisk as er
from empirisk.errors import LETTERS, EmpiriskError, did_you_mean

#: What an expression may call, by the module that has it; the empty name is ``er`` itself.
MACHINES = """
    Classifier Regressor Perceptron Network TreeClassifier TreeRegressor ForestClassifier ForestRegressor
    BoostingClassifier BoostingRegressor KNNClassifier KNNRegressor KMeans GaussianMixture Hierarchical
"""
CALLABLE = {
    "": MACHINES.split(),
    "kernels": ["Gaussian", "Laplacian", "Linear", "Polynomial", "Anova", "Normalised"],
    "maps": ["Polynomial"],
    "solvers": ["DualAscent", "Decomposition"],
}
OPERATORS = {ast.Add: operator.add, ast.Mult: operator.mul, ast.Pow: operator.pow}
LONGEST = 400  # letters of an expression: a sum of a dozen kernels
#: The largest number: widths, degrees and rounds beyond it only take time.
LARGEST = 1e6
HIGHEST_POWER = 10  # of a kernel: beyond it numbers overflow


def evaluate(text: str) -> Any:
    """The object that an expression stands for.

    >>> evaluate("er.Classifier(C=2.0, features=0.5 * er.kernels.Gaussian(1.0) + er.kernels.Linear())").C
    2.0
    >>> evaluate("__import__('os')")
    Traceback (most recent call last):
    empirisk.errors.EmpiriskError: "__import__('os')" cannot be read: it may hold numbers, kernels, + and * alone.
    """
    return _value(_parsed(text).body, text)


def kernel_text(text: str) -> str:
    """A kernel expression as a person types it, with the names written out.

    >>> kernel_text("Gaussian(0.5) + 0.1*Polynomial(2)")
    'er.kernels.Gaussian(0.5) + 0.1 * er.kernels.Polynomial(2)'
    """
    written = ast.unparse(_Prefixed().visit(_parsed(text)))
    if not hasattr(evaluate(written), "diagonal"):
        raise EmpiriskError(f"kernel={text[:LETTERS]!r} is no kernel; write one like Gaussian(0.5) + Linear().")
    return written


def _parsed(text: str) -> ast.Expression:
    if not isinstance(text, str) or len(text) > LONGEST:
        raise EmpiriskError(f"The expression is longer than {LONGEST} letters; write a shorter one.")
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise EmpiriskError(f"{text[:LETTERS]!r} is no expression; write one like Gaussian(0.5) + Linear().") from None


class _Prefixed(ast.NodeTransformer):
    """Writes ``Gaussian`` as ``er.kernels.Gaussian``."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        known = CALLABLE["kernels"]
        if node.id == "er":
            return node
        if node.id not in known:
            raise EmpiriskError(
                f"{node.id!r} is no kernel; {did_you_mean(node.id, known, 'choose from ' + ', '.join(known) + '.')}"
            )
        return ast.parse(f"er.kernels.{node.id}", mode="eval").body


def _value(node: ast.AST, text: str) -> Any:
    """The value of a part of an expression; anything that is not listed here is refused."""
    match node:
        case ast.Constant(value=bool() | str() | None):
            return node.value
        case ast.Constant(value=int() | float() as number) if abs(number) <= LARGEST:
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, text)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_value(part, text) for part in parts]
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            return _combined(OPERATORS[type(sign)], _value(left, text), _value(right, text), text)
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="on"), args=[columns], keywords=[]):
            return _value(inner, text).on(_value(columns, text))
        case ast.Call(func=function, args=arguments, keywords=named) if _path(function) is not None:
            given = [_value(one, text) for one in arguments]
            options = {one.arg: _value(one.value, text) for one in named if one.arg is not None}
            return _called(_path(function) or "", given, options, text)
    raise EmpiriskError(f"{text[:LETTERS]!r} cannot be read: it may hold numbers, kernels, + and * alone.")


def _combined(sign: Any, left: Any, right: Any, text: str) -> Any:
    if sign is operator.pow and not (isinstance(right, int) and 1 <= right <= HIGHEST_POWER):
        raise EmpiriskError(f"{text[:LETTERS]!r} has a power that is no whole number from 1 to {HIGHEST_POWER}.")
    try:
        return sign(left, right)
    except (TypeError, ValueError, OverflowError):
        raise EmpiriskError(f"{text[:LETTERS]!r} combines what cannot be combined; use kernels and numbers.") from None


def _path(node: ast.AST) -> str | None:
    """``kernels.Gaussian`` of ``er.kernels.Gaussian``, if an expression may call it."""
    match node:
        case ast.Attribute(value=ast.Name(id="er"), attr=name) if name in CALLABLE[""]:
            return name
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="er"), attr=module), attr=name):
            return f"{module}.{name}" if name in CALLABLE.get(module, ()) else None
    return None


def _called(path: str, given: list[Any], options: dict[str, Any], text: str) -> Any:
    try:
        return operator.attrgetter(path)(er)(*given, **options)
    except TypeError as error:
        raise EmpiriskError(f"{text[:LETTERS]!r} cannot be read: {error}.") from None
