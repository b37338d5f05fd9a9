"""Recurrent layers and cells. Sources: S. Hochreiter and J. Schmidhuber 1997 (LSTM); K. Cho et al. 2014 (GRU)."""

from __future__ import annotations

import math
from typing import Any

from ..namespace import root
from ..tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .packed_rnn import run_packed
from .parameter import Parameter
from .utils.rnn import PackedSequence

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNCell"]


class _Cell(Module):
    _gates = 1

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = self._gates * hidden_size
        self.weight_ih = Parameter(root.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(root.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            made = Parameter(root.empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1/sqrt(hidden)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _zeros(self, input: Tensor) -> Tensor:
        shape = (*input.shape[:-1], self.hidden_size)
        return root.zeros(shape, dtype=input.dtype, device=input.device)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"{self.input_size}, {self.hidden_size}"


class RNNCell(_Cell):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh). (N, in), (N, hidden) -> (N, hidden)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """One step."""
        h = self._zeros(input) if hx is None else hx
        return rnn_step(input, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh, self.nonlinearity)


class LSTMCell(_Cell):
    """One LSTM step. (N, in), ((N, hidden), (N, hidden)) -> ((N, hidden), (N, hidden))."""

    _gates = 4

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """One step."""
        h, c = (self._zeros(input), self._zeros(input)) if hx is None else hx
        return lstm_step(input, h, c, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


class GRUCell(_Cell):
    """One GRU step. (N, in), (N, hidden) -> (N, hidden)."""

    _gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """One step."""
        h = self._zeros(input) if hx is None else hx
        return gru_step(input, h, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)


def rnn_step(x: Tensor, h: Tensor, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, nonlinearity: str = "tanh") -> Tensor:
    """The Elman step."""
    total = F.linear(x, w_ih, b_ih) + F.linear(h, w_hh, b_hh)
    return total.tanh() if nonlinearity == "tanh" else total.relu()


def lstm_step(x: Tensor, h: Tensor, c: Tensor, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Tensor, Tensor]:
    """The LSTM step; gates in the order input, forget, cell, output."""
    i, f, g, o = (F.linear(x, w_ih, b_ih) + F.linear(h, w_hh, b_hh)).chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_step(x: Tensor, h: Tensor, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> Tensor:
    """The GRU step; gates in the order reset, update, new."""
    r1, z1, n1 = F.linear(x, w_ih, b_ih).chunk(3, dim=-1)
    r2, z2, n2 = F.linear(h, w_hh, b_hh).chunk(3, dim=-1)
    z = (z1 + z2).sigmoid()
    n = (n1 + (r1 + r2).sigmoid() * n2).tanh()
    return n + z * (h - n)


class _Recurrent(Module):
    """Layers, directions and steps around one of the step functions."""

    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional
        rows, self.directions = self._gates * hidden_size, 2 if bidirectional else 1
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self.directions]:
                width = input_size if layer == 0 else hidden_size * self.directions
                shapes = {"weight_ih": (rows, width), "weight_hh": (rows, hidden_size)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                for name, shape in shapes.items():
                    made = Parameter(root.empty(shape, device=device, dtype=dtype))
                    self.register_parameter(f"{name}_l{layer}{suffix}", made)
        bound = 1.0 / math.sqrt(hidden_size) if hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _weights(self, layer: int, direction: int) -> tuple[Any, ...]:
        end = f"_l{layer}" + ("_reverse" if direction else "")
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return tuple(getattr(self, name + end) if self.bias or "bias" not in name else None for name in names)

    def _run(self, steps: list[Tensor], state: Any, weights: tuple[Any, ...]) -> tuple[list[Tensor], Any]:
        raise NotImplementedError

    def _layers(self, x: Tensor, states: list[Any]) -> tuple[Tensor, list[Any]]:
        """(T, N, in) and one state per layer and direction -> (T, N, directions * hidden) and the last states."""
        finals = []
        for layer in range(self.num_layers):
            sides = []
            for direction in range(self.directions):
                steps = list(x.unbind(0))
                if direction:
                    steps.reverse()
                outs, final = self._run(
                    steps, states[layer * self.directions + direction], self._weights(layer, direction)
                )
                if direction:
                    outs.reverse()
                sides.append(root.stack(outs, 0))
                finals.append(final)
            x = sides[0] if len(sides) == 1 else root.cat(sides, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return x, finals

    def _zeros(self, x: Tensor, batch: int | None = None) -> Tensor:
        shape = (self.num_layers * self.directions, x.shape[1] if batch is None else batch, self.hidden_size)
        return root.zeros(shape, dtype=x.dtype, device=x.device)

    def _packed_zeros(self, packed: PackedSequence) -> Tensor:
        return self._zeros(packed.data, int(packed.batch_sizes[0]))

    def extra_repr(self) -> str:
        """Sizes."""
        return f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, batch_first={self.batch_first}"


class _OneState(_Recurrent):
    def _step(self, x: Tensor, h: Tensor, weights: tuple[Any, ...]) -> Tensor:
        raise NotImplementedError

    def _run(self, steps: list[Tensor], state: Any, weights: tuple[Any, ...]) -> tuple[list[Tensor], Any]:
        outs = []
        for x in steps:
            state = self._step(x, state, weights)
            outs.append(state)
        return outs, state

    def _packed_step(self, layer: int, direction: int) -> Any:
        weights = self._weights(layer, direction)
        return lambda x, state: (self._step(x, state[0], weights),)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """(T, N, in) (or batch first, without a batch, packed), (layers, N, hidden) -> outputs, last states."""
        if isinstance(input, PackedSequence):
            packed, (last,) = run_packed(self, input, (self._packed_zeros(input) if hx is None else hx,))
            return packed, last
        batched = input.ndim == 3
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        h = self._zeros(x) if hx is None else (hx if batched else hx.unsqueeze(1))
        x, finals = self._layers(x, list(h.unbind(0)))
        last = root.stack(finals, 0)
        if not batched:
            return x.squeeze(1), last.squeeze(1)
        return (x.transpose(0, 1) if self.batch_first else x), last


class RNN(_OneState):
    """Elman layers."""

    def __init__(self, *args: Any, nonlinearity: str = "tanh", **kwargs: Any) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
        super().__init__(*args, **kwargs)
        self.nonlinearity = nonlinearity

    def _step(self, x: Tensor, h: Tensor, weights: tuple[Any, ...]) -> Tensor:
        return rnn_step(x, h, *weights, self.nonlinearity)


class GRU(_OneState):
    """Gated recurrent layers."""

    _gates = 3

    def _step(self, x: Tensor, h: Tensor, weights: tuple[Any, ...]) -> Tensor:
        return gru_step(x, h, *weights)


class LSTM(_Recurrent):
    """Long short-term memory layers."""

    _gates = 4

    def _run(self, steps: list[Tensor], state: Any, weights: tuple[Any, ...]) -> tuple[list[Tensor], Any]:
        outs, (h, c) = [], state
        for x in steps:
            h, c = lstm_step(x, h, c, *weights)
            outs.append(h)
        return outs, (h, c)

    def _packed_step(self, layer: int, direction: int) -> Any:
        weights = self._weights(layer, direction)
        return lambda x, state: lstm_step(x, *state, *weights)

    def forward(self, input: Any, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Any, tuple[Tensor, Tensor]]:
        """(T, N, in) (or batch first, without a batch, packed), (h, c) -> outputs, (h, c)."""
        if isinstance(input, PackedSequence):
            zeros = self._packed_zeros(input)
            packed, states = run_packed(self, input, (zeros, zeros) if hx is None else hx)
            return packed, (states[0], states[1])
        batched = input.ndim == 3
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        if hx is None:
            h, c = self._zeros(x), self._zeros(x)
        else:
            h, c = hx if batched else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        x, finals = self._layers(x, list(zip(h.unbind(0), c.unbind(0), strict=True)))
        last_h, last_c = root.stack([f[0] for f in finals], 0), root.stack([f[1] for f in finals], 0)
        if not batched:
            return x.squeeze(1), (last_h.squeeze(1), last_c.squeeze(1))
        return (x.transpose(0, 1) if self.batch_first else x), (last_h, last_c)
