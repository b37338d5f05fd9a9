"""The JSON schema of graphs."""

from __future__ import annotations

from typing import Any

from .node import KINDS

__all__ = ["SCHEMA"]

_VALUE = {"$ref": "#/$defs/value"}
_SIZE = {"type": ["integer", "string"], "description": "a number, or an expression over the symbols"}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Lamina graph",
    "type": "object",
    "required": ["format", "version", "nodes"],
    "properties": {
        "format": {"const": "lamina.graph"},
        "version": {"type": "integer", "minimum": 0},
        "symbols": {"type": "array", "items": {"$ref": "#/$defs/symbol"}},
        "attributes": {"type": "object", "additionalProperties": _VALUE},
        "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
    "$defs": {
        "body": {
            "description": "a subgraph; its symbols are declared by the outermost graph",
            "type": "object",
            "required": ["nodes"],
            "properties": {
                "attributes": {"type": "object", "additionalProperties": _VALUE},
                "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
        },
        "symbol": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "lower": {"type": ["integer", "null"]},
                "upper": {"type": ["integer", "string", "null"]},
                "divisor": {"type": "integer"},
                "hint": {"type": ["integer", "null"]},
                "source": {"type": "string"},
            },
        },
        "node": {
            "type": "object",
            "required": ["name", "op", "target"],
            "properties": {
                "name": {"type": "string"},
                "op": {"enum": list(KINDS)},
                "target": {"type": "string"},
                "args": {"type": "array", "items": _VALUE},
                "kwargs": {"type": "object", "additionalProperties": _VALUE},
                "spec": {"$ref": "#/$defs/spec"},
                "effect": {"type": "string"},
                "regions": {"type": "array", "items": {"type": "string"}},
                "source": {"type": "array", "description": "file, line, function"},
                "meta": {"type": "object"},
            },
        },
        "spec": {
            "type": ["object", "null"],
            "properties": {
                "tensor": {
                    "type": "object",
                    "required": ["dtype", "shape", "strides"],
                    "properties": {
                        "dtype": {"type": "string"},
                        "shape": {"type": "array", "items": _SIZE},
                        "strides": {"type": "array", "items": _SIZE},
                        "device": {"type": "string"},
                    },
                },
                "scalar": {"enum": ["bool", "int", "float", "complex"]},
                "value": _VALUE,
                "tuple": {"type": "array", "items": {"$ref": "#/$defs/spec"}},
            },
        },
        "value": {
            "description": "a scalar, a list, or an object with one of the keys below",
            "type": ["object", "array", "string", "number", "boolean", "null"],
            "properties": {
                "node": {"type": "string"},
                "tuple": {"type": "array", "items": _VALUE},
                "dict": {"type": "array", "items": {"type": "array", "items": _VALUE}},
                "slice": {"type": "array", "items": _VALUE},
                "float": {"enum": ["nan", "inf", "-inf"]},
                "complex": {"type": "array", "items": {"type": "string"}},
                "dtype": {"type": "string"},
                "device": {"type": "string"},
                "sym": {"type": "string"},
                "expr": {"type": "string"},
                "spec": {"$ref": "#/$defs/spec"},
                "array": {"type": "object"},
                "graph": {"$ref": "#/$defs/body"},
                "ellipsis": {"const": True},
            },
        },
    },
}
