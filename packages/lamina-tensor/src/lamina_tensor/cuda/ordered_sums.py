"""Sums by index whose bits are the same every time, for ``use_deterministic_algorithms``: no atomics.

What goes to one element is brought together by a stable sort and added in pairs, pairs of pairs and so on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["add_in_order"]


def add_in_order(xp: Any, array: Any, index: Any, values: Any) -> None:
    """``array[index] += values``, once for each of equal indices, in an order that they alone determine.

    xp: the device library. It waits for the device, so it cannot be captured in a graph.
    """
    places = xp.arange(array.size, dtype=np.int64).reshape(array.shape)[index]
    if not places.size:
        return
    terms = xp.broadcast_to(xp.asarray(values, dtype=array.dtype), places.shape).reshape(-1)
    order = xp.argsort(places.reshape(-1), kind="stable")
    places, terms = places.reshape(-1)[order], terms[order]
    while True:
        begins = xp.concatenate([xp.ones(1, bool), places[1:] != places[:-1]])
        starts = xp.nonzero(begins)[0]
        if starts.size == places.size:
            break
        even = (xp.arange(places.size) - starts[xp.cumsum(begins) - 1]) % 2 == 0
        paired = xp.concatenate([begins[1:] == 0, xp.zeros(1, bool)])  # the next one is of the same element
        sums = xp.where(paired, terms + xp.concatenate([terms[1:], terms[:1]]), terms)
        places, terms = places[even], sums[even]
    flat = array.reshape(-1)
    flat[places] += terms
    array[...] = flat.reshape(array.shape)
