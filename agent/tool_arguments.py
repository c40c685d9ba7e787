"""What a model's arguments must be: the one reading of a tool's schema, and the sentence for what does not fit it.

A whole number written with a fraction (2.0) is no integer here, though JSON Schema takes it for one: code behind the
schema counts and slices with it.
"""

from typing import Any

from jsonschema import Draft202012Validator, TypeChecker, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from maxclaw.text import head_and_tail

# The sentence quotes what does not fit, however long that is.
PROBLEM_MAX_CHARS = 400


def _is_integer(_checker: TypeChecker, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


Schema = extend(Draft202012Validator, type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer))


def problem_with(arguments: Any, schema: Draft202012Validator) -> str | None:
    """Where arguments do not fit a schema and what is wrong there, to stand behind what they are for; at most
    PROBLEM_MAX_CHARS characters. None where they fit."""
    error = best_match(schema.iter_errors(arguments))
    if error is None:
        return None
    place = ".".join(str(part) for part in error.absolute_path)
    return head_and_tail(f"{f' at {place}' if place else ''}: {_said(error)}", PROBLEM_MAX_CHARS, " … ")


def _said(error: ValidationError) -> str:
    branches: Any = error.validator_value if error.validator == "anyOf" else []
    choices = [branch.get("required") for branch in branches]
    if choices and all(choices):
        return "give " + " or ".join(" and ".join(names) for names in choices)
    return str(error.message)
