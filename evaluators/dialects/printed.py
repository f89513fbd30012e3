"""Objects of Python programs that an instrumentor recorded as they print: ``ChatMessage(role=<Role.USER: 'user'>, …)``."""

from __future__ import annotations

import ast
import re

_LIMIT = 200_000
_OBJECT = re.compile(r"\w+\(\w+=")
_MEMBER = re.compile(r"<[\w.]+: ('[^'\n]*'|\"[^\"\n]*\"|-?\d+)>")
_OPAQUE = re.compile(r"<[\w.]+(?: object)?(?: at 0x[0-9a-f]+)?>")


def printed(text: str) -> object:
    """The printed object as a mapping of its fields, without the underscores they begin with; the text itself
    when it is none. Members of enumerations are their values."""
    if len(text) > _LIMIT or not _OBJECT.match(text):
        return text
    for source in (text, _OPAQUE.sub("None", _MEMBER.sub(r"\1", text))):
        try:
            return _value(ast.parse(source, mode="eval").body)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
    return text


def _value(node: ast.expr) -> object:
    if isinstance(node, ast.Call):
        return {word.arg.lstrip("_"): _value(word.value) for word in node.keywords if word.arg}
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {
            str(_value(key)): _value(value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }
    if isinstance(node, ast.Name | ast.Attribute):
        return None
    return ast.literal_eval(node)
