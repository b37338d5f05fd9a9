"""Loading data, saving and loading, random generators, checkpointing."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import lamina_tensor as lt
from lamina_tensor import nn, optim
from lamina_tensor.utils.checkpoint import checkpoint
from lamina_tensor.utils.data import ConcatDataset, DataLoader, IterableDataset, TensorDataset, random_split


def test_batches_in_order_and_shuffled() -> None:
    data = TensorDataset(lt.arange(10.0), lt.arange(10))
    batches = list(DataLoader(data, batch_size=4))
    assert [b[0].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert len(DataLoader(data, batch_size=4, drop_last=True)) == 2
    lt.manual_seed(0)
    seen = [v for x, _ in DataLoader(data, batch_size=3, shuffle=True) for v in x.tolist()]
    assert sorted(seen) == list(range(10)) and seen != list(range(10))


def test_dicts_streams_and_joined_sets() -> None:
    class Stream(IterableDataset[dict[str, int]]):
        def __iter__(self):
            return ({"a": k, "b": lt.ones(2) * k} for k in range(3))

    first, second = list(DataLoader(Stream(), batch_size=2))
    assert first["a"].tolist() == [0, 1] and tuple(first["b"].shape) == (2, 2) and second["a"].tolist() == [2]
    joined = ConcatDataset([TensorDataset(lt.arange(2)), TensorDataset(lt.arange(3))])
    assert len(joined) == 5 and joined[3][0].item() == 1 and joined[-1][0].item() == 2
    assert [len(p) for p in random_split(joined, [0.4, 0.6])] == [2, 3]


def test_saved_structures_come_back(tmp_path: Path) -> None:
    net = nn.Linear(2, 3)
    optimizer = optim.Adam(net.parameters())
    net(lt.ones(1, 2)).sum().backward()
    optimizer.step()
    state = {
        "net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": 7, "betas": (0.9, [1, None, "x"]),
        "half": lt.ones(3, dtype=lt.bfloat16), "dtype": lt.float32, "scalar": lt.tensor(2.0),
    }  # fmt: skip
    lt.save(state, tmp_path / "a.lamina")
    back = lt.load(tmp_path / "a.lamina")
    assert isinstance(back["net"], OrderedDict) and lt.equal(back["net"]["weight"], net.weight)
    assert back["betas"] == (0.9, [1, None, "x"]) and back["step"] == 7 and back["dtype"] is lt.float32
    assert back["half"].dtype is lt.bfloat16 and back["scalar"].shape == ()
    optimizer.load_state_dict(back["optimizer"])
    net.load_state_dict(back["net"])


def test_bad_files_and_values(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file"):
        lt.load(tmp_path / "none")
    (tmp_path / "bad").write_bytes(b"not a tensor file at all")
    with pytest.raises(ValueError, match="damaged"):
        lt.load(tmp_path / "bad")
    with pytest.raises(TypeError, match="cannot store a Linear"):
        lt.save({"model": nn.Linear(1, 1)}, tmp_path / "model")
    assert not list(tmp_path.glob("*.part"))


def test_a_seed_gives_one_sequence() -> None:
    lt.manual_seed(5)
    first = [lt.rand(3).tolist(), lt.randn(2, 2).tolist(), lt.randint(0, 9, (4,)).tolist(), lt.randperm(5).tolist()]
    state = lt.get_rng_state()
    after = lt.rand(3).tolist()
    lt.manual_seed(5)
    again = [lt.rand(3).tolist(), lt.randn(2, 2).tolist(), lt.randint(0, 9, (4,)).tolist(), lt.randperm(5).tolist()]
    assert first == again
    lt.set_rng_state(state)
    assert lt.rand(3).tolist() == after
    own = lt.Generator().manual_seed(5)
    assert lt.rand(3, generator=own).tolist() == first[0]


def test_draws_do_not_overlap() -> None:
    lt.manual_seed(0)
    values = np.concatenate([lt.rand(5).numpy() for _ in range(50)])
    assert len(np.unique(values)) == len(values)


def test_moments_and_ranges() -> None:
    lt.manual_seed(1)
    x = lt.randn(40000).numpy()
    assert abs(x.mean()) < 0.02 and abs(x.std() - 1) < 0.02
    u = lt.empty(40000).uniform_(2, 3).numpy()
    assert u.min() >= 2 and u.max() < 3 and abs(u.mean() - 2.5) < 0.01
    counts = np.bincount(lt.randint(0, 4, (40000,)).numpy(), minlength=4)
    assert counts.min() > 9500
    kept = lt.bernoulli(lt.full((40000,), 0.25)).numpy()
    assert abs(kept.mean() - 0.25) < 0.01
    drawn = lt.multinomial(lt.tensor([0.0, 3.0, 1.0]), 2000, replacement=True).numpy()
    assert not (drawn == 0).any() and abs((drawn == 1).mean() - 0.75) < 0.04
    assert sorted(lt.multinomial(lt.tensor([1.0, 1.0, 1.0]), 3).tolist()) == [0, 1, 2]


def test_dropout_scales_what_it_keeps() -> None:
    lt.manual_seed(2)
    y = nn.functional.dropout(lt.ones(10000), 0.2).numpy()
    assert set(np.unique(y)) == {0.0, np.float32(1.25)} and abs(y.mean() - 1) < 0.02


def test_checkpoint_recomputes_the_same_numbers() -> None:
    layer, x = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Tanh()), lt.randn(3, 4).requires_grad_()
    lt.manual_seed(3)
    checkpoint(layer, x).sum().backward()
    grads = [x.grad.tolist(), layer[0].weight.grad.tolist()]
    x.grad = layer[0].weight.grad = None
    lt.manual_seed(3)
    layer(x).sum().backward()
    assert grads == [x.grad.tolist(), layer[0].weight.grad.tolist()]
