"""Memory of compiled CUDA programs on the stub device: what is kept, what is given back, and when."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from stub_device import StubDevice

import lamina
from lamina_tensor import cuda
from lamina_tensor.cuda.stub_provider import StubProvider

X = lamina.arange(37 * 20).reshape(37, 20) / 100.0 - 3.0


def test_memory_of_small_results_serves_again(device: StubDevice) -> None:
    run, x = lamina.compile(lambda x: x.sin().sum(0)), X.cuda()
    first = run(x)
    kept, address = first.cpu(), first.data_ptr()
    second = run(x + 1)
    assert second.data_ptr() != address  # the first is alive
    view = first[3:]
    del first
    third = run(x + 2)
    assert third.data_ptr() not in (address, second.data_ptr())  # a view of it is
    np.testing.assert_array_equal(view.cpu().numpy(), kept.numpy()[3:])
    exported = lamina.from_dlpack(view)
    del view
    assert run(x + 3).data_ptr() != address
    np.testing.assert_array_equal(exported.cpu().numpy(), kept.numpy()[3:])
    del exported, third
    places = [run(x).data_ptr() for _ in range(3)]
    assert len(set(places)) == 1
    with lamina.cuda.stream(lamina.cuda.Stream()):
        elsewhere = run(x).data_ptr()
    assert elsewhere != places[0]  # the stream of the first may still read there
    np.testing.assert_allclose(second.cpu().numpy(), (X + 1).sin().sum(0).numpy(), rtol=1e-4, atol=1e-4)


def test_the_driver_gets_back_what_the_pool_keeps_when_it_has_too_little(device: StubDevice) -> None:
    x = X.cuda()
    lamina.compile(lambda x: x.sin())(x)
    kept = lamina.cuda.memory_reserved()
    device.library.stub_short_of_memory(1)
    got = lamina.compile(lambda x: x + lamina.tensor([0.5] * 20, device=x.device))(x)
    np.testing.assert_allclose(got.cpu().numpy(), X.numpy() + 0.5)
    assert lamina.cuda.memory_reserved() < kept + 1000  # the sine's result was given back, the sum's is new
    device.library.stub_short_of_memory(2)
    run = lamina.compile(lambda x: x + lamina.tensor([0.25] * 20, device=x.device), fullgraph=True)
    said = (
        r"CUDA out of memory. Tried to allocate 80 B for a constant. cuda:0 has .* free of .*; tensors hold .* Tensor"
    )
    with pytest.raises(lamina.cuda.OutOfMemoryError, match=said):
        run(x)
    np.testing.assert_allclose(run(x).cpu().numpy(), X.numpy() + 0.25)


def test_no_more_than_a_bounded_amount_of_memory_is_kept(device: StubDevice) -> None:
    run, x = lamina.compile(lambda x: x + 1), lamina.zeros(1 << 20).cuda()
    gc.collect()
    lamina.cuda.empty_cache()
    before = lamina.cuda.memory_reserved()
    with device.blind():
        results = [run(x) for _ in range(24)]  # of 4 MiB
        assert len({r.data_ptr() for r in results}) == 24
        del results
        assert 60 << 20 <= lamina.cuda.memory_reserved() - before <= 64 << 20
        results = [run(x) for _ in range(24)]
        assert len({r.data_ptr() for r in results}) == 24
        del results
    lamina.cuda.empty_cache()
    assert lamina.cuda.memory_reserved() == before


def test_kept_memory_is_given_back(device: StubDevice) -> None:
    run, x = lamina.compile(lambda x: x.exp() + x.cos()), X.cuda()
    gc.collect()
    lamina.cuda.empty_cache()
    before = lamina.cuda.memory_reserved()
    run(x)
    assert lamina.cuda.memory_reserved() > before
    lamina.cuda.empty_cache()
    assert lamina.cuda.memory_reserved() == before


def test_workspaces_are_given_up_before_memory_is_said_to_be_short(device: StubDevice) -> None:
    """An eager operator and a program get what an idle program's workspace holds: 32 MiB for the library's products."""
    lamina.cuda.empty_cache()
    before = cuda.use_provider(StubProvider(memory=40 << 20))
    try:
        x, fn = X.cuda(), lambda x: (x @ x.t()).softmax(-1).sum(0)
        product = lamina.compile(fn)
        wide = lamina.compile(lambda x: x[:, :, None] + lamina.zeros(37, 20, 3000, device=x.device))
        for _ in range(2):
            np.testing.assert_allclose(product(x).cpu().numpy(), fn(X).numpy(), rtol=1e-4)
            assert lamina.cuda.memory_allocated() > 32 << 20
            assert lamina.ones(20 << 20, device="cuda", dtype=lamina.uint8)[-1].item() == 1
            product(x)
            with device.blind():
                assert wide(x).shape == (37, 20, 3000)
        words = r"Tried to allocate 64.00 MiB. cuda:0 has (39.\d\d|40.00) MiB free of 40.00 MiB.* The largest: "
        with pytest.raises(lamina.cuda.OutOfMemoryError, match=words):
            lamina.empty(1 << 24, device="cuda")
    finally:
        lamina.cuda.empty_cache()
        cuda.use_provider(before)


def test_a_program_and_its_constants_go_with_the_function(device: StubDevice) -> None:
    numbers = lamina.arange(5000.0).tolist()
    run, x = lamina.compile(lambda x: x + lamina.tensor(numbers, device=x.device)), lamina.ones(5000).cuda()
    assert run(x)[4999].item() == 5000
    record = lamina.compiler.records()[-1]
    (artifact,) = record.artifacts.values()
    program = weakref.ref(artifact.function)
    assert not any(isinstance(v, lamina.Tensor) for graph in record.stages.values() for v in graph.attributes.values())
    del run, artifact
    assert program() is None
    assert len(record.kernels) == 1 and "5000" in str(record)
