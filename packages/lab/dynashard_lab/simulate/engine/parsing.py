"""Parses DynamoDB's expressions into small trees. Only attributes of the item itself can be named, not parts of them.

A tree is a tuple that begins with its kind:

    ("path", name)  ("value", placeholder)  ("size", path)
    ("or", tree, tree)  ("and", tree, tree)  ("not", tree)
    ("=", operand, operand), and so on for the other comparisons
    ("between", operand, low, high)  ("in", operand, operands)
    ("attribute_exists", path)  ("attribute_not_exists", path)  ("begins_with", path, operand)  ("contains", ...)
    ("if_not_exists", path, operand)  ("+", operand, operand)  ("-", operand, operand)
"""

import re
from functools import partial
from typing import Any, Final

from dynashard_lab.simulate.engine.refusal import invalid

Tree = tuple[Any, ...]

COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">="})
_TOKENS: Final = re.compile(r"\s*([#:]?[A-Za-z0-9_]+|<>|<=|>=|[-=<>(),+])")
_TESTS: Final = {"attribute_exists": 1, "attribute_not_exists": 1, "begins_with": 2, "contains": 2}
_CLAUSES: Final = ("SET", "REMOVE", "ADD", "DELETE")


def condition_tree(text: str) -> Tree:
    """Return the tree of a condition, a filter or a key condition."""
    parser = _Parser(text)
    tree = parser.disjunction()
    parser.end()
    return tree


def update_clauses(text: str) -> dict[str, list[Tree]]:
    """Return the actions of an update by clause: `("=", path, operand)`, `path`, `("add", path, value)`."""
    parser = _Parser(text)
    clauses: dict[str, list[Tree]] = {}
    while parser.ahead is not None:
        clause = parser.take().upper()
        if clause not in _CLAUSES or clause in clauses:
            raise parser.refusal()
        clauses[clause] = parser.listed(parser.assignment if clause == "SET" else partial(parser.action, clause))
    if not clauses:
        raise parser.refusal()
    return clauses


def paths(text: str) -> list[Tree]:
    """Return the attributes that a projection names."""
    parser = _Parser(text)
    found = parser.listed(parser.path)
    parser.end()
    return found


def placeholders(text: str) -> frozenset[str]:
    """Return the names and values that an expression takes from the request."""
    return frozenset(token for token in _TOKENS.findall(text) if token[0] in "#:")


class _Parser:
    """Parses one expression by recursive descent."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            found = _TOKENS.match(text, at)
            if found is None:
                raise self.refusal()
            self._tokens.append(found[1])
            at = found.end()
        self._next = 0

    @property
    def ahead(self) -> str | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def refusal(self) -> Exception:
        return invalid(f"Invalid expression, or one that this engine does not know: {self._text}")

    def end(self) -> None:
        if self.ahead is not None:
            raise self.refusal()

    def take(self, expected: str | None = None) -> str:
        token = self.ahead
        if token is None or (expected is not None and token.upper() != expected):
            raise self.refusal()
        self._next += 1
        return token

    def accept(self, expected: str) -> bool:
        if self.ahead is None or self.ahead.upper() != expected:
            return False
        self._next += 1
        return True

    def listed(self, one: Any) -> list[Tree]:
        found = [one()]
        while self.accept(","):
            found.append(one())
        return found

    def disjunction(self) -> Tree:
        tree = self._conjunction()
        while self.accept("OR"):
            tree = ("or", tree, self._conjunction())
        return tree

    def _conjunction(self) -> Tree:
        tree = self._negation()
        while self.accept("AND"):
            tree = ("and", tree, self._negation())
        return tree

    def _negation(self) -> Tree:
        if self.accept("NOT"):
            return ("not", self._negation())
        if self.accept("("):
            tree = self.disjunction()
            self.take(")")
            return tree
        if self.ahead in _TESTS:
            return self._test()
        return self._comparison()

    def _test(self) -> Tree:
        name = self.take()
        self.take("(")
        arguments = self.listed(self._operand)
        self.take(")")
        if len(arguments) != _TESTS[name] or arguments[0][0] != "path":
            raise self.refusal()
        return (name, *arguments)

    def _comparison(self) -> Tree:
        left = self._operand()
        if self.accept("BETWEEN"):
            low = self._operand()
            self.take("AND")
            return ("between", left, low, self._operand())
        if self.accept("IN"):
            self.take("(")
            members = self.listed(self._operand)
            self.take(")")
            return ("in", left, tuple(members))
        operator = self.take()
        if operator not in COMPARISONS:
            raise self.refusal()
        return (operator, left, self._operand())

    def _operand(self) -> Tree:
        if self.ahead is not None and self.ahead.startswith(":"):
            return ("value", self.take())
        if self.ahead == "size":
            self.take()
            self.take("(")
            measured = self.path()
            self.take(")")
            return ("size", measured)
        return self.path()

    def path(self) -> Tree:
        token = self.take()
        if token[0] != "#" and not token.isidentifier():
            raise self.refusal()
        return ("path", token)

    def assignment(self) -> Tree:
        path = self.path()
        self.take("=")
        operand = self._sum_part()
        if self.ahead in ("+", "-"):
            operand = (self.take(), operand, self._sum_part())
        return ("=", path, operand)

    def _sum_part(self) -> Tree:
        if self.ahead != "if_not_exists":
            return self._operand()
        self.take()
        self.take("(")
        path = self.path()
        self.take(",")
        default = self._operand()
        self.take(")")
        return ("if_not_exists", path, default)

    def action(self, clause: str) -> Tree:
        path = self.path()
        if clause == "REMOVE":
            return path
        operand = self._operand()
        if operand[0] != "value":
            raise self.refusal()
        return (clause.lower(), path, operand)
