"""What is timed. Each workload is written once for PyTorch's API (which Lamina shares), once for JAX, once for NumPy.

``inputs(rng)`` makes NumPy arrays; ``torch_like(t, F)`` returns the function to compile, given the package (``lamina``
or ``torch``) and its ``nn.functional``; it takes the inputs as tensors. ``grads`` names inputs that require gradients.
Results of all engines must agree: what is returned, then gradients, then written inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["WORKLOADS", "Workload"]

Inputs = dict[str, np.ndarray]


@dataclass(frozen=True)
class Workload:
    """One row of the table."""

    name: str
    group: str
    inputs: Callable[[np.random.Generator], Inputs]
    torch_like: Callable[[Any, Any], Callable[..., Any]]
    jax: Callable[[Any, Any], Callable[..., Any]]
    numpy: Callable[..., Any] | None = None
    grads: tuple[str, ...] = ()
    written: tuple[str, ...] = ()  # inputs that the function updates in place: they are its results


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    """Normal float32 numbers."""
    return (rng.standard_normal(shape) * scale).astype(np.float32)


# -- pointwise ------------------------------------------------------------------------------------


def pointwise_torch(t: Any, F: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        return t.tanh(x * 1.5 + y) * t.sigmoid(y) + t.exp(-x * x)

    return f


def pointwise_jax(jax: Any, jnp: Any) -> Any:
    return lambda x, y: jnp.tanh(x * 1.5 + y) * jax.nn.sigmoid(y) + jnp.exp(-x * x)


def pointwise_numpy(x: Any, y: Any) -> Any:
    return np.tanh(x * 1.5 + y) / (1 + np.exp(-y)) + np.exp(-x * x)


# -- softmax --------------------------------------------------------------------------------------


def softmax_numpy(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# -- layer norm + gelu ----------------------------------------------------------------------------


def layer_norm_torch(t: Any, F: Any) -> Any:
    def f(x: Any, w: Any, b: Any) -> Any:
        return F.gelu(F.layer_norm(x, (x.shape[-1],), w, b))

    return f


def _layer_norm_jax(jax: Any, jnp: Any, x: Any, w: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * w + b


def layer_norm_jax(jax: Any, jnp: Any) -> Any:
    return lambda x, w, b: jax.nn.gelu(_layer_norm_jax(jax, jnp, x, w, b), approximate=False)


def layer_norm_numpy(x: Any, w: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    y = (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * w + b
    return 0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y**3)))  # no erf in NumPy


def layer_norm_training_torch(t: Any, F: Any) -> Any:
    def f(x: Any, w: Any, b: Any) -> Any:
        loss = F.gelu(F.layer_norm(x, (x.shape[-1],), w, b)).sum()
        loss.backward()
        return loss

    return f


def layer_norm_training_jax(jax: Any, jnp: Any) -> Any:
    forward = layer_norm_jax(jax, jnp)
    return jax.value_and_grad(lambda x, w, b: forward(x, w, b).sum(), argnums=(0, 1, 2))


# -- RMS norm + rotary ----------------------------------------------------------------------------


def rotary_torch(t: Any, F: Any) -> Any:
    def f(x: Any, w: Any, cos: Any, sin: Any) -> Any:
        y = x * t.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w
        half = y.shape[-1] // 2
        rotated = t.cat((-y[..., half:], y[..., :half]), dim=-1)
        return y * cos + rotated * sin

    return f


def rotary_jax(jax: Any, jnp: Any) -> Any:
    def f(x: Any, w: Any, cos: Any, sin: Any) -> Any:
        y = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w
        half = y.shape[-1] // 2
        return y * cos + jnp.concatenate((-y[..., half:], y[..., :half]), -1) * sin

    return f


def rotary_numpy(x: Any, w: Any, cos: Any, sin: Any) -> Any:
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w
    half = y.shape[-1] // 2
    return y * cos + np.concatenate((-y[..., half:], y[..., :half]), -1) * sin


# -- cross entropy --------------------------------------------------------------------------------


def cross_entropy_torch(t: Any, F: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        return F.cross_entropy(x, y)

    return f


def cross_entropy_training_torch(t: Any, F: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(x, y)
        loss.backward()
        return loss

    return f


def _cross_entropy_jax(jax: Any, jnp: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        logp = jax.nn.log_softmax(x, -1)
        return -jnp.take_along_axis(logp, y[:, None], 1).mean()

    return f


def cross_entropy_training_jax(jax: Any, jnp: Any) -> Any:
    return jax.value_and_grad(_cross_entropy_jax(jax, jnp))


def cross_entropy_numpy(x: Any, y: Any) -> Any:
    m = x.max(-1, keepdims=True)
    lse = np.log(np.exp(x - m).sum(-1)) + m[:, 0]
    return (lse - x[np.arange(len(y)), y]).mean()


# -- variance -------------------------------------------------------------------------------------


def standardise_torch(t: Any, F: Any) -> Any:
    def f(x: Any) -> Any:
        return F.relu((x - x.mean(0)) / t.sqrt(x.var(0) + 1e-5))

    return f


def standardise_jax(jax: Any, jnp: Any) -> Any:
    return lambda x: jax.nn.relu((x - x.mean(0)) / jnp.sqrt(x.var(0, ddof=1) + 1e-5))


def standardise_numpy(x: Any) -> Any:
    return np.maximum((x - x.mean(0)) / np.sqrt(x.var(0, ddof=1) + 1e-5), 0)


# -- AdamW over 8 tensors -------------------------------------------------------------------------

ADAMW_SIZES = (1 << 20, 1 << 20, 1 << 19, 1 << 19, 1 << 19, 1 << 18, 1 << 18, 1 << 18)


def adamw_inputs(rng: np.random.Generator) -> Inputs:
    made: Inputs = {}
    for k, size in enumerate(ADAMW_SIZES):
        for part in ("p", "g", "m"):
            made[f"{part}{k}"] = normal(rng, size)
        made[f"v{k}"] = np.abs(normal(rng, size))
    return made


def adamw_torch(t: Any, F: Any) -> Any:
    def f(*tensors: Any) -> Any:
        for k in range(0, len(tensors), 4):
            p, g, m, v = tensors[k : k + 4]
            p.mul_(1 - 1e-3 * 0.01)
            m.lerp_(g, 0.1)
            v.mul_(0.999).addcmul_(g, g, value=0.001)
            p.addcdiv_(m, v.sqrt().add_(1e-8), value=-1e-3)

    return f


def adamw_jax(jax: Any, jnp: Any) -> Any:
    def f(*arrays: Any) -> Any:
        out = []
        for k in range(0, len(arrays), 4):
            p, g, m, v = arrays[k : k + 4]
            m = m + 0.1 * (g - m)
            v = v * 0.999 + 0.001 * g * g
            out += [p * (1 - 1e-5) - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v]
        return out

    return f


def adamw_numpy(*arrays: Any) -> Any:
    for k in range(0, len(arrays), 4):
        p, g, m, v = arrays[k : k + 4]
        m += np.float32(0.1) * (g - m)
        v *= np.float32(0.999)
        v += np.float32(0.001) * g * g
        p *= np.float32(1 - 1e-5)
        p -= np.float32(1e-3) * m / (np.sqrt(v) + np.float32(1e-8))


# -- models ---------------------------------------------------------------------------------------


def mlp_torch(t: Any, F: Any) -> Any:
    def f(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2)

    return f


def mlp_jax(jax: Any, jnp: Any) -> Any:
    return lambda x, w1, b1, w2, b2: jax.nn.gelu(x @ w1.T + b1, approximate=False) @ w2.T + b2


def attention_torch(t: Any, F: Any) -> Any:
    def f(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    return f


def _attention_jax(jax: Any, jnp: Any, q: Any, k: Any, v: Any) -> Any:
    size = q.shape[-2]
    scores = q @ jnp.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones((size, size), bool))
    return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), -1) @ v


def attention_jax(jax: Any, jnp: Any) -> Any:
    return lambda q, k, v: _attention_jax(jax, jnp, q, k, v)


def conv_torch(t: Any, F: Any) -> Any:
    def f(x: Any, w: Any, g: Any, b: Any, mean: Any, var: Any) -> Any:
        return F.relu(F.batch_norm(F.conv2d(x, w, padding=1), mean, var, g, b))

    return f


def conv_jax(jax: Any, jnp: Any) -> Any:
    def f(x: Any, w: Any, g: Any, b: Any, mean: Any, var: Any) -> Any:
        y = jax.lax.conv_general_dilated(x, w, (1, 1), ((1, 1), (1, 1)))
        scale = g * jax.lax.rsqrt(var + 1e-5)
        return jax.nn.relu(y * scale[:, None, None] + (b - mean * scale)[:, None, None])

    return f


GPT_WIDTH, GPT_HEADS = 256, 4


def gpt_inputs(rng: np.random.Generator) -> Inputs:
    width = GPT_WIDTH
    return {
        "x": normal(rng, 2, 128, width),
        "n1": np.ones(width, np.float32),
        "m1": np.zeros(width, np.float32),
        "qkv": normal(rng, 3 * width, width, scale=0.05),
        "proj": normal(rng, width, width, scale=0.05),
        "n2": np.ones(width, np.float32),
        "m2": np.zeros(width, np.float32),
        "up": normal(rng, 4 * width, width, scale=0.05),
        "down": normal(rng, width, 4 * width, scale=0.05),
    }


def gpt_torch(t: Any, F: Any) -> Any:
    def f(x: Any, n1: Any, m1: Any, qkv: Any, proj: Any, n2: Any, m2: Any, up: Any, down: Any) -> Any:
        b, s, w = x.shape
        h = F.layer_norm(x, (w,), n1, m1)
        q, k, v = F.linear(h, qkv).view(b, s, 3, GPT_HEADS, w // GPT_HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(a.transpose(1, 2).reshape(b, s, w), proj)
        h = F.layer_norm(x, (w,), n2, m2)
        x = x + F.linear(F.gelu(F.linear(h, up)), down)
        loss = (x * x).mean()
        loss.backward()
        return loss

    return f


def gpt_jax(jax: Any, jnp: Any) -> Any:
    def forward(x: Any, n1: Any, m1: Any, qkv: Any, proj: Any, n2: Any, m2: Any, up: Any, down: Any) -> Any:
        b, s, w = x.shape
        h = _layer_norm_jax(jax, jnp, x, n1, m1)
        heads = (h @ qkv.T).reshape(b, s, 3, GPT_HEADS, w // GPT_HEADS).transpose(2, 0, 3, 1, 4)
        a = _attention_jax(jax, jnp, heads[0], heads[1], heads[2])
        x = x + a.transpose(0, 2, 1, 3).reshape(b, s, w) @ proj.T
        h = _layer_norm_jax(jax, jnp, x, n2, m2)
        x = x + jax.nn.gelu(h @ up.T, approximate=False) @ down.T
        return (x * x).mean()

    return jax.value_and_grad(forward, argnums=tuple(range(9)))


# -- tiny -----------------------------------------------------------------------------------------


def tiny_torch(t: Any, F: Any) -> Any:
    return lambda x, y: t.sin(x) + 2 * y


def _x(*shape: int) -> Callable[[np.random.Generator], Inputs]:
    return lambda rng: {"x": normal(rng, *shape)}


WORKLOADS: tuple[Workload, ...] = (
    Workload(
        "pointwise 2^22",
        "kernels",
        lambda rng: {"x": normal(rng, 1 << 22), "y": normal(rng, 1 << 22)},
        pointwise_torch,
        pointwise_jax,
        pointwise_numpy,
    ),
    Workload(
        "softmax 1024x2048",
        "kernels",
        _x(1024, 2048),
        lambda t, F: lambda x: F.softmax(x, dim=-1),
        lambda jax, jnp: lambda x: jax.nn.softmax(x, -1),
        softmax_numpy,
    ),
    Workload(
        "layer norm + gelu 1024x1024",
        "kernels",
        lambda rng: {"x": normal(rng, 1024, 1024), "w": normal(rng, 1024), "b": normal(rng, 1024)},
        layer_norm_torch,
        layer_norm_jax,
        layer_norm_numpy,
    ),
    Workload(
        "layer norm + gelu training",
        "kernels",
        lambda rng: {"x": normal(rng, 1024, 1024), "w": normal(rng, 1024), "b": normal(rng, 1024)},
        layer_norm_training_torch,
        layer_norm_training_jax,
        None,
        ("x", "w", "b"),
    ),
    Workload(
        "RMS norm + rotary 2x8x128x64",
        "kernels",
        lambda rng: {
            "x": normal(rng, 2, 8, 128, 64),
            "w": normal(rng, 64),
            "cos": normal(rng, 128, 64),
            "sin": normal(rng, 128, 64),
        },
        rotary_torch,
        rotary_jax,
        rotary_numpy,
    ),
    Workload(
        "cross entropy 256x16384",
        "kernels",
        lambda rng: {"x": normal(rng, 256, 16384), "y": rng.integers(0, 16384, 256)},
        cross_entropy_torch,
        _cross_entropy_jax,
        cross_entropy_numpy,
    ),
    Workload(
        "cross entropy training",
        "kernels",
        lambda rng: {"x": normal(rng, 256, 16384), "y": rng.integers(0, 16384, 256)},
        cross_entropy_training_torch,
        cross_entropy_training_jax,
        None,
        ("x",),
    ),
    Workload(
        "standardise columns 2048x2048",
        "kernels",
        _x(2048, 2048),
        standardise_torch,
        standardise_jax,
        standardise_numpy,
    ),
    Workload(
        "AdamW 8 tensors, 4.3M",
        "kernels",
        adamw_inputs,
        adamw_torch,
        adamw_jax,
        adamw_numpy,
        written=tuple(f"{part}{k}" for k in range(len(ADAMW_SIZES)) for part in "pmv"),
    ),
    Workload(
        "MLP 256x512x2048",
        "models",
        lambda rng: {
            "x": normal(rng, 256, 512),
            "w1": normal(rng, 2048, 512, scale=0.05),
            "b1": normal(rng, 2048),
            "w2": normal(rng, 512, 2048, scale=0.05),
            "b2": normal(rng, 512),
        },
        mlp_torch,
        mlp_jax,
    ),
    Workload(
        "causal attention 2x4x256x64",
        "models",
        lambda rng: {n: normal(rng, 2, 4, 256, 64) for n in "qkv"},
        attention_torch,
        attention_jax,
    ),
    Workload(
        "conv 3x3 + batch norm 4x64x28x28",
        "models",
        lambda rng: {
            "x": normal(rng, 4, 64, 28, 28),
            "w": normal(rng, 64, 64, 3, 3, scale=0.05),
            "g": normal(rng, 64),
            "b": normal(rng, 64),
            "mean": normal(rng, 64),
            "var": np.abs(normal(rng, 64)) + 0.5,
        },
        conv_torch,
        conv_jax,
    ),
    Workload(
        "GPT block training 2x128x256",
        "models",
        gpt_inputs,
        gpt_torch,
        gpt_jax,
        None,
        tuple(("x", "n1", "m1", "qkv", "proj", "n2", "m2", "up", "down")),
    ),
    Workload(
        "sin(x) + 2y on 16",
        "tiny",
        lambda rng: {"x": normal(rng, 16), "y": normal(rng, 16)},
        tiny_torch,
        lambda jax, jnp: lambda x, y: jnp.sin(x) + 2 * y,
        lambda x, y: np.sin(x) + 2 * y,
    ),
)
"""Every row of the table, in order."""
