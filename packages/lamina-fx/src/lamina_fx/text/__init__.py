"""The text form of graphs: what ``print_graph`` writes, ``parse`` reads back.

>>> g = parse('''
... graph {
...   %x: float32[2, 3] = placeholder
...   %add: float32[2, 3] = add(%x, 1)
...   return %add
... }
... ''')
>>> print(print_graph(g))
graph {
  %x: float32[2, 3] = placeholder
  %add: float32[2, 3] = add(%x, 1)
  return %add
}
>>> parse(print_graph(g)) == g
True

Grammar (``[]`` optional, ``*`` repeated)::

    graph      = "graph" "{" symbol* attribute* node* "}"
    symbol     = "symbol" name "in" "[" [int] "," [int | expr] "]" ["step" int] ["hint" int] ["source" string]
    attribute  = "attribute" path "=" value
    node       = "return" value
               | "%" name [":" spec] "=" call ["!" word] ["in" "{" region, ... "}"] ["at" string ":" int function]
                 ["meta" dict]
    call       = target "(" argument, ... ")"             call_function
               | "method" target "(" argument, ... ")"    call_method
               | "module" target "(" argument, ... ")"    call_module
               | "get" target                             get_attr
               | "placeholder" [target] ["(" value ")"]
               | "output" "(" value ")"
    argument   = [name "="] value
    spec       = dtype "[" expr, ... "]" ["@" "(" expr, ... ")"] [device] | kind ["(" value ")"] | "(" spec, ... ")"
               | "?"
    value      = "%" name | number | string | True | False | None | "..." | dtype | tuple | list | dict
               | "slice" "(" value "," value "," value ")" | "complex" "(" float "," float ")" | "device" "(" string ")"
               | "sym" "(" expr ")" | "expr" "(" expr ")" | "spec" "(" spec ")" | graph
               | "array" "(" dtype "," list "," string ")"

A target or region that is no dotted name is written as a string. ``#`` starts a comment.
"""

from __future__ import annotations

from .constant import ArrayConstant
from .parser import parse
from .printer import UnprintableError, print_graph
from .tokens import ParseError

__all__ = ["ArrayConstant", "ParseError", "UnprintableError", "parse", "print_graph"]
