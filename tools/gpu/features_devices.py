"""Features of devices: making and moving tensors, streams, memory, several devices, other libraries, files."""

from __future__ import annotations

import copy
import os
import pickle
import sys
import tempfile
from pathlib import Path

from feature_list import feature, needs, needs_two_devices, raises


@feature
def creation() -> None:
    """Every function that makes tensors."""
    import lamina_tensor as lt

    d = {"device": "cuda"}
    assert lt.tensor([1, 2], **d).tolist() == [1, 2] and lt.as_tensor([1.5], **d).item() == 1.5
    assert lt.zeros(2, 3, **d).sum().item() == 0 and lt.ones(2, **d).sum().item() == 2
    assert lt.full((2,), 7.0, **d).tolist() == [7, 7] and lt.empty(3, **d).shape == (3,)
    assert lt.arange(2, 9, 3, **d).tolist() == [2, 5, 8] and lt.eye(2, **d).trace().item() == 2
    assert lt.linspace(0, 1, 3, **d).tolist() == [0, 0.5, 1] and lt.logspace(0, 2, 3, **d).tolist() == [1, 10, 100]
    assert lt.empty_strided((2, 3), (1, 2), **d).stride() == (1, 2) and lt.tril_indices(2, 2, **d).is_cuda
    x = lt.ones(2, 2, dtype=lt.float16, **d)
    for made in (
        lt.zeros_like(x),
        lt.ones_like(x),
        lt.full_like(x, 3),
        lt.empty_like(x),
        lt.rand_like(x),
        x.new_zeros(2),
        x.new_ones(2),
        x.new_full((2,), 1),
        x.new_empty(2),
        x.new_tensor([1, 2]),
    ):
        assert made.is_cuda and made.dtype is lt.float16, made
    for draw in (lt.rand, lt.randn):
        assert draw(3, **d).is_cuda
    assert lt.randint(3, (4,), **d).is_cuda and lt.randperm(4, **d).sort().values.tolist() == [0, 1, 2, 3]
    assert lt.ones_like(x, device="cpu").device.type == "cpu"


@feature
def moving() -> None:
    """to, cuda, cpu, type_as, copy_, with and without dtypes and strides."""
    import lamina_tensor as lt

    x = lt.arange(6.0).reshape(2, 3)
    y = x.cuda()
    assert y.to("cuda") is y and y.cuda(0) is y and y.to(lt.device("cuda", 0)) is y and y.to(device="cuda") is y
    assert y.to("cuda", copy=True) is not y and x.to("cuda:0", lt.float64).dtype is lt.float64
    assert x.to(y).is_cuda and x.type_as(y).is_cuda and y.to("cpu").tolist() == x.tolist() == y.cpu().tolist()
    assert x.t().cuda().stride() == (1, 3) and x.t().cuda().cpu().stride() == (1, 3)
    assert x[:, ::2].cuda().tolist() == [[0, 2], [3, 5]] and y.half().float().tolist() == x.tolist()
    z = lt.empty(2, 3, device="cuda", dtype=lt.int64)
    z.copy_(x)
    assert z.tolist() == [[0, 1, 2], [3, 4, 5]] and x.clone().zero_().copy_(z).tolist() == x.tolist()
    assert x.to("cuda", non_blocking=True).tolist() == x.tolist() and (y.device == lt.device("cuda:0"))
    assert str(y.device) == "cuda:0" and y.get_device() == 0 and x.get_device() == -1 and y.device.index == 0
    raises(RuntimeError, "there is no device cuda:77", lambda: x.to("cuda:77"))


@feature
def pinned_copies() -> None:
    """Pinned memory, both ways, without waiting."""
    import lamina_tensor as lt
    from lamina_tensor import cuda

    x = lt.rand(1 << 16).pin_memory()
    assert x.is_pinned() and lt.empty(3, pin_memory=True).is_pinned() and not lt.empty(3).is_pinned()
    y = x.to("cuda", non_blocking=True) * 2
    back = lt.empty(1 << 16, pin_memory=True)
    back.copy_(y, non_blocking=True)
    cuda.current_stream().synchronize()
    assert back.tolist() == (x * 2).tolist()
    assert y.to("cpu", non_blocking=True).sum().item() == back.sum().item()  # not pinned: waits
    there = []
    for n in range(6):
        there.append(lt.full((1 << 20,), float(n)).pin_memory().to("cuda", non_blocking=True))
        lt.full((1 << 20,), -1.0).pin_memory()  # takes no memory that is still to be copied
    assert [(t[0].item(), t[-1].item()) for t in there] == [(n, n) for n in range(6)]


@feature
def data_loaders() -> None:
    """DataLoader(pin_memory=True), nested batches, workers."""
    import lamina_tensor as lt
    from lamina_tensor.utils.data import DataLoader, TensorDataset

    data = TensorDataset(lt.arange(12.0).reshape(6, 2), lt.arange(6))
    seen = 0.0
    for x, y in DataLoader(data, batch_size=2, pin_memory=True):
        assert x.is_pinned() and y.is_pinned()
        seen += (x.cuda(non_blocking=True).sum() + y.cuda(non_blocking=True).sum()).item()
    assert seen == 66 + 15


@feature
def default_device() -> None:
    """set_default_device and ``with lt.device(...)``."""
    import lamina_tensor as lt

    with lt.device("cuda"):
        assert lt.zeros(2).is_cuda and lt.tensor([1]).is_cuda and lt.nn.Linear(2, 2).weight.is_cuda
    lt.set_default_device("cuda")
    try:
        assert lt.rand(2).is_cuda and lt.zeros(2, device="cpu").device.type == "cpu"
    finally:
        lt.set_default_device(None)
    assert not lt.rand(2).is_cuda


@feature
def streams_and_events() -> None:
    """Streams, events, waits, queries, timing."""
    import lamina_tensor as lt
    from lamina_tensor import cuda

    side, low = cuda.Stream(), cuda.Stream(priority=-1)
    first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    x = lt.ones(1 << 20, device="cuda")
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        assert cuda.current_stream() == side
        first.record()
        for _ in range(20):
            x = x * 1.01
        last.record()
        x.record_stream(side)
    cuda.current_stream().wait_event(last)
    total = (x + 1).sum().item()
    last.synchronize()
    assert last.query() and first.elapsed_time(last) >= 0 and abs(total / (1 << 20) - 1 - 1.01**20) < 1e-3
    event = side.record_event()
    low.wait_event(event)
    low.synchronize(), cuda.synchronize(), cuda.synchronize("cuda:0")
    assert side.query() and cuda.current_stream() == cuda.default_stream() and cuda.current_stream().cuda_stream == 0
    with side:
        assert cuda.current_stream() == side
    outer = cuda.ExternalStream(side.cuda_stream)
    assert outer.cuda_stream == side.cuda_stream


@feature
def memory_statistics() -> None:
    """allocated, max, reserved, peaks, summary, get_info, OutOfMemoryError."""
    import lamina_tensor as lt
    from lamina_tensor import cuda

    cuda.synchronize()
    cuda.reset_peak_memory_stats()
    start = cuda.memory_allocated()
    x = lt.empty(1 << 20, device="cuda")
    assert cuda.memory_allocated() == start + (4 << 20) and cuda.memory_reserved() >= 4 << 20
    del x
    assert cuda.memory_allocated() == start and cuda.max_memory_allocated() == start + (4 << 20)
    assert cuda.max_memory_reserved() >= max(4 << 20, cuda.memory_reserved())
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == start
    free, total = cuda.mem_get_info()
    assert 0 < free <= total == cuda.get_device_properties().total_memory or free <= total
    assert cuda.memory_stats()["allocated_bytes.all.current"] == start
    assert "held by tensors" in cuda.memory_summary() and "cuda:0" in cuda.memory_summary(0, abbreviated=True)
    raises(cuda.OutOfMemoryError, "CUDA out of memory. Tried to allocate", lambda: lt.empty(1 << 50, device="cuda"))
    raises(lt.OutOfMemoryError, "CUDA out of memory", lambda: lt.empty(1 << 50, device="cuda"))
    cuda.empty_cache()
    assert lt.ones(3, device="cuda").sum().item() == 3


@feature
def device_queries() -> str:
    """Properties, counts, names, architectures."""
    from lamina_tensor import cuda

    found = cuda.get_device_properties(0)
    assert cuda.is_available() and cuda.device_count() >= 1 and cuda.is_initialized() and cuda.current_device() == 0
    assert cuda.get_device_name() == found.name and cuda.get_device_capability() == (found.major, found.minor)
    assert found.multi_processor_count > 0 and found.warp_size == 32 and cuda.get_arch_list()[0].startswith("sm_")
    cuda.init(), cuda.set_device(0), cuda.set_device("cuda:0")
    return f"{found.name}, {found.major}.{found.minor}"


@feature
def several_devices() -> None:
    """Tensors on cuda:1, contexts, copies between, errors of mixing."""
    import lamina_tensor as lt
    from lamina_tensor import cuda

    needs_two_devices()
    x = lt.arange(4.0, device="cuda:1")
    assert x.get_device() == 1 and (x * 2 + 1).sum().item() == 16 and (x @ x).get_device() == 1
    assert cuda.current_device() == 0
    with cuda.device(1):
        assert lt.zeros(2, device="cuda").get_device() == 1 and cuda.current_device() == 1
        assert lt.tensor([1.0]).cuda().get_device() == 1 and cuda.current_stream().device_index == 1
    y = x.to("cuda:0")
    assert y.get_device() == 0 and y.tolist() == x.tolist() and y.to(1).tolist() == x.tolist()
    y.copy_(x * 3)
    assert y.tolist() == [0, 3, 6, 9] and cuda.current_device() == 0
    words = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!"
    raises(RuntimeError, words, lambda: y + x)
    leaf = lt.ones(3, device="cuda:1", requires_grad=True)
    ((leaf * 2).to("cuda:0") ** 2).sum().backward()
    assert leaf.grad.get_device() == 1 and leaf.grad.tolist() == [8, 8, 8]
    model = lt.nn.Linear(2, 2).to("cuda:1")
    assert model(lt.ones(1, 2, device="cuda:1")).get_device() == 1
    side = cuda.Stream(device=1)
    with cuda.stream(side):
        assert cuda.current_device() == 1 and cuda.current_stream(1) == side
        z = lt.ones(8, device="cuda:1") + 1
    side.synchronize()
    assert z.sum().item() == 16 and cuda.memory_allocated(1) > 0
    cuda.synchronize(1)
    cuda.set_device(1)
    try:
        assert lt.rand(2, device="cuda").get_device() == 1
    finally:
        cuda.set_device(0)


@feature
def no_gpu() -> None:
    """In a process that sees no GPU: False, 0, and nothing of a device library is imported."""
    import subprocess

    program = (
        "import sys, lamina_tensor as lt\n"
        "assert lt.cuda.is_available() is False and lt.cuda.device_count() == 0\n"
        "assert not {'cupy', 'torch', 'triton'} & set(sys.modules)\n"
        "try:\n    lt.ones(2, device='cuda')\n"
        "except RuntimeError as error:\n    assert 'cannot be used' in str(error)\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "LAMINA_CUDA_PROVIDER"}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


@feature
def cupy_exchange() -> None:
    """DLPack and the array interface with CuPy, both ways, sharing memory."""
    import lamina_tensor as lt

    cupy = needs("cupy")
    x = lt.arange(6.0, device="cuda").reshape(2, 3)
    theirs, also = cupy.from_dlpack(x), cupy.asarray(x.t())
    theirs[0, 0] = 9
    assert x[0, 0].item() == 9 and also.shape == (3, 2) and also.data.ptr == theirs.data.ptr == x.data_ptr()
    mine, second = lt.from_dlpack(theirs), lt.as_tensor(theirs)
    mine[1, 1] = 7
    assert second[1, 1].item() == 7 and second.data_ptr() == x.data_ptr() and mine.stride() == (3, 1)
    assert lt.tensor(theirs).data_ptr() != x.data_ptr()
    for dtype in (lt.bool, lt.int8, lt.uint8, lt.int64, lt.float16, lt.bfloat16, lt.float64, lt.complex64):
        y = lt.ones(3, device="cuda").to(dtype)
        back = lt.from_dlpack(cupy.from_dlpack(y))
        assert back.dtype is dtype and back.tolist() == y.tolist() and back.data_ptr() == y.data_ptr()
    part = cupy.arange(10)[::2]
    assert lt.from_dlpack(part).tolist() == [0, 2, 4, 6, 8] and lt.as_tensor(part).stride() == (2,)


@feature
def torch_exchange() -> str:
    """DLPack and the array interface with PyTorch, both ways, sharing memory."""
    import lamina_tensor as lt

    torch = needs("torch")
    x = lt.arange(6.0, device="cuda").reshape(2, 3)
    theirs = torch.from_dlpack(x)
    theirs[0, 0] = 9
    torch.cuda.synchronize()
    assert theirs.is_cuda and x[0, 0].item() == 9 and theirs.data_ptr() == x.data_ptr()
    also = torch.as_tensor(x.t(), device="cuda")
    assert also.shape == (3, 2) and also.data_ptr() == x.data_ptr()
    mine, second = lt.from_dlpack(theirs), lt.as_tensor(theirs)
    mine[1, 1] = 7
    assert second[1, 1].item() == 7 and mine.data_ptr() == x.data_ptr() and theirs[1, 1].item() == 7
    for name in ("bool", "uint8", "int64", "float16", "bfloat16", "float64", "complex64"):
        y = torch.ones(3, device="cuda", dtype=getattr(torch, name))
        got = lt.from_dlpack(y)
        assert got.dtype is getattr(lt, name) and got.tolist() == y.tolist()
        assert torch.from_dlpack(got).dtype is y.dtype
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        z = torch.ones(1 << 20, device="cuda") * 3
    assert lt.from_dlpack(z).sum().item() == 3 << 20
    return f"torch {torch.__version__}"


@feature
def pickles_and_files() -> None:
    """pickle, deepcopy, save and load with map_location."""
    import lamina_tensor as lt

    x = lt.tensor([1.0, 2.0], device="cuda", requires_grad=True)
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), copy.copy(x)):
        assert twin.is_cuda and twin.tolist() == [1, 2] and twin.requires_grad
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.pt"
        lt.save({"x": x, "half": x.bfloat16(), "step": 3, "f8": x.detach().to(lt.float8_e5m2)}, path)
        there, here = lt.load(path), lt.load(path, map_location="cpu")
        assert there["x"].is_cuda and there["half"].dtype is lt.bfloat16 and there["half"].is_cuda
        assert not here["x"].is_cuda and here["x"].tolist() == [1, 2] and here["step"] == 3
        assert there["f8"].is_cuda and there["f8"].tolist() == [1, 2]
        assert lt.load(path, map_location=lt.device("cpu"))["x"].device.type == "cpu"
        assert lt.load(path, map_location={"cuda:0": "cpu"})["x"].device.type == "cpu"
        assert lt.load(path, map_location=lambda t, where: t)["x"].device.type == "cpu"
        lt.save({"y": lt.ones(2)}, path)
        assert lt.load(path, map_location="cuda")["y"].is_cuda
