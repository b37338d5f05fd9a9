"""Features of operators: values, indices, views, sorting, linear algebra, scatters, float8."""

from __future__ import annotations

from typing import Any

from feature_list import close, feature, raises


@feature
def values_and_printing() -> None:
    """item, tolist, bool, format, repr, iteration, comparisons with numbers on the CPU."""
    import lamina_tensor as lt

    x = lt.tensor([1.0, 2.5], device="cuda")
    assert repr(x) == "tensor([1.0000, 2.5000], device='cuda:0')", repr(x)
    assert repr(lt.tensor(3, device="cuda")) == "tensor(3, device='cuda:0')"
    assert "grad_fn" in repr(x.requires_grad_() * 2) and "device='cuda:0'" in repr(lt.rand(100, 100, device="cuda"))
    x = x.detach()
    assert x[0].item() == 1.0 and x.tolist() == [1, 2.5] and bool((x > 0).all()) and int(x[1]) == 2 and len(x) == 2
    assert [v.item() for v in x] == [1, 2.5] and 2.5 in x and f"{x[1]:.2f}" == "2.50" and float(x[0]) == 1
    assert (x + lt.tensor(1.0)).is_cuda and (lt.tensor(1.0) < x).tolist() == [False, True]
    assert (x + lt.tensor(1.0, dtype=lt.float64)).dtype is lt.float32 and lt.maximum(x, lt.tensor(2.0)).tolist() == [
        2,
        2.5,
    ]
    assert lt.where(x > 2, x, lt.tensor(0.0)).tolist() == [0, 2.5] and (x == x.clone()).all() and lt.equal(x, x)
    raises(RuntimeError, "Expected all tensors to be on the same device", lambda: x + lt.ones(2))
    raises(TypeError, "can't convert cuda:0 device type tensor to numpy", x.numpy)
    assert [10, 20, 30][lt.tensor(1, device="cuda")] == 20 and hash(x) == hash(x)


@feature
def indexing() -> None:
    """Slices, integers, masks, lists, index tensors on both sides; assignments; errors."""
    import lamina_tensor as lt

    x = lt.arange(12.0, device="cuda").reshape(3, 4)
    c = lt.arange(12.0).reshape(3, 4)
    i, j = lt.tensor([2, 0, 1]), lt.tensor([[0], [3]])
    for cut in (
        1,
        slice(None, None, 2),
        (slice(None), 1),
        (..., None, 2),
        [2, 0],
        (slice(None), [3, 1]),
        c > 4,
        i,
        (i, 1),
        (i[:2], i[1:]),
        (slice(1, None), j),
        (None, i),
        c[:, 0] > 3,
        (c[:, 0] > 3, 2),
        -1,
        (slice(None), -2),
    ):
        close(x[cut], c[cut], 0)

        def there(v: Any) -> Any:
            return v.cuda() if isinstance(v, lt.Tensor) else v

        moved = tuple(map(there, cut)) if isinstance(cut, tuple) else there(cut)
        close(x[moved], c[cut], 0)
        a, b = x.clone(), c.clone()
        a[moved], b[cut] = -1.0, -1.0
        close(a, b, 0)
        a[moved] += 3
        b[cut] += 3
        close(a, b, 0)
    x[x > 5] = lt.tensor(0.5)
    x[0] = lt.ones(4)
    x[:, 1] = lt.ones(3, device="cuda") * 9
    assert x.tolist() == [[1, 9, 1, 1], [4, 9, 0.5, 0.5], [0.5, 9, 0.5, 0.5]]
    y = lt.zeros(4, device="cuda").index_put_(
        (lt.tensor([1, 1, 3], device="cuda"),), lt.ones(3, device="cuda"), accumulate=True
    )
    assert y.tolist() == [0, 2, 0, 1]
    raises(IndexError, "out of", lambda: x[lt.tensor([0, 9], device="cuda")])
    raises(IndexError, "", lambda: x[5])
    assert x.sum().item() == 36.5


@feature
def views_and_writes() -> None:
    """Views share memory and versions; in-place operators; resize; data; out=."""
    import lamina_tensor as lt

    x = lt.zeros(3, 4, device="cuda")
    x[1].fill_(1)
    x[:, 1:3][2].add_(5).mul_(2)
    x.t()[0].sub_(1)
    assert x.tolist() == [[-1, 0, 0, 0], [0, 1, 1, 1], [-1, 10, 10, 0]] and x._version == 4, x._version
    assert x.view(4, 3).storage is x.storage and x[1].data_ptr() == x.data_ptr() + 16 and x.t()._base is x
    x.clamp_(0, 5).sqrt_()
    out = lt.empty(3, 4, device="cuda")
    lt.mul(x, 2, out=out)
    close(out, x.cpu() * 2)
    x.masked_fill_(x > 1, 0).zero_()
    assert x.sum().item() == 0
    x.data = lt.ones(2, device="cuda")
    assert x.tolist() == [1, 1] and x.unsqueeze(0).expand(3, 2).contiguous().is_contiguous()
    raises(RuntimeError, "leaf Variable", lambda: lt.ones(1, device="cuda", requires_grad=True).add_(1))


@feature
def searching_and_sorting() -> None:
    """sort, topk, unique, nonzero, cumsum, argsort, searchsorted, bincount, histc, median, kthvalue, mode."""
    import lamina_tensor as lt

    lt.manual_seed(0)
    c = lt.randn(7, 33)
    k = lt.randint(0, 9, (50,))
    for f in (
        lambda a, n: a.sort(1),
        lambda a, n: a.sort(0, descending=True),
        lambda a, n: a.topk(5),
        lambda a, n: a.argsort(1),
        lambda a, n: a.topk(3, largest=False),
        lambda a, n: n.unique(),
        lambda a, n: n.unique(return_counts=True, return_inverse=True),
        lambda a, n: lt.unique_consecutive(n),
        lambda a, n: a.cumsum(1),
        lambda a, n: a.cumprod(0),
        lambda a, n: a.cummax(1),
        lambda a, n: (a > 0).nonzero(),
        lambda a, n: lt.where(a > 1),
        lambda a, n: a.median(1),
        lambda a, n: a.kthvalue(4),
        lambda a, n: lt.bincount(n),
        lambda a, n: lt.searchsorted(a.flatten().sort().values, a[0]),
        lambda a, n: a.argmax(1),
        lambda a, n: lt.histc(a, 10, -2, 2),
        lambda a, n: a.max(0),
        lambda a, n: a.logcumsumexp(1),
        lambda a, n: n.sort(stable=True),
        lambda a, n: lt.bucketize(a, a[0].sort().values),
        lambda a, n: lt.masked_select(a, a > 0),
        lambda a, n: a.quantile(0.3),
        lambda a, n: a.aminmax(),
        lambda a, n: lt.isin(n, lt.tensor([1, 2], device=n.device)),
        lambda a, n: a.argwhere(),
    ):
        got, want = f(c.cuda(), k.cuda()), f(c, k)
        for a, b in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, want)], strict=True):
            close(a, b)


@feature
def linear_algebra() -> None:
    """cholesky, solve, qr, svd, eigh, inv, det, lstsq, pinv, norms; batched, gradients."""
    import lamina_tensor as lt

    lt.manual_seed(0)
    c = lt.randn(3, 6, 6)
    p = c @ c.mT + 3 * lt.eye(6)
    b = lt.randn(3, 6, 2)
    la = lt.linalg
    for f in (
        lambda a, p, b: la.cholesky(p),
        lambda a, p, b: la.solve(a, b),
        lambda a, p, b: la.inv(a),
        lambda a, p, b: la.det(a),
        lambda a, p, b: la.slogdet(a),
        lambda a, p, b: la.svdvals(a),
        lambda a, p, b: la.eigvalsh(p),
        lambda a, p, b: la.pinv(a),
        lambda a, p, b: la.matrix_norm(a, 2),
        lambda a, p, b: la.vector_norm(a),
        lambda a, p, b: la.matrix_rank(a),
        lambda a, p, b: la.lstsq(a, b).solution,
        lambda a, p, b: la.matrix_power(a, 3),
        lambda a, p, b: la.matrix_exp(a * 0.1),
        lambda a, p, b: la.solve_triangular(a.triu(), b, upper=True),
        lambda a, p, b: lt.einsum("bij,bjk->bik", a, b),
        lambda a, p, b: lt.cholesky_solve(b, la.cholesky(p)),
        lambda a, p, b: la.multi_dot([a[0], a[1], b[0]]),
    ):
        got, want = f(c.cuda(), p.cuda(), b.cuda()), f(c, p, b)
        for x, y in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, want)], strict=True):
            close(x, y, 2e-3)
    g = c.cuda()
    q, r = la.qr(g)
    close(q @ r, c), close(q.mT @ q, lt.eye(6).expand(3, 6, 6))
    u, s, vh = la.svd(g, full_matrices=False)
    close(u @ s.diag_embed() @ vh, c), close(u.mT @ u, lt.eye(6).expand(3, 6, 6))
    w, v = la.eigh(p.cuda())
    close(p.cuda() @ v - v * w[:, None, :], lt.zeros(3, 6, 6), 1e-3)
    leaf = p.cuda().requires_grad_()
    la.slogdet(leaf).logabsdet.sum().backward()
    close(leaf.grad, la.inv(p).mT, 1e-3)
    raises(RuntimeError, "", lambda: la.cholesky(-lt.eye(3, device="cuda")))
    raises(RuntimeError, "", lambda: la.inv(lt.zeros(3, 3, device="cuda")))


@feature
def fourier_transforms() -> None:
    """fft, rfft, ifft, fft2, fftshift."""
    import lamina_tensor as lt

    c = lt.randn(4, 16)
    for f in (
        lt.fft.fft,
        lt.fft.rfft,
        lt.fft.fft2,
        lambda a: lt.fft.irfft(lt.fft.rfft(a)),
        lt.fft.fftshift,
        lt.fft.ifft,
        lambda a: lt.fft.rfftn(a),
        lambda a: lt.fft.hfft(a),
    ):
        close(f(c.cuda()), f(c))


@feature
def scatters() -> None:
    """gather, scatter, scatter_add, scatter_reduce, index_add, index_copy, put, take, masked_scatter; deterministic."""
    import lamina_tensor as lt

    lt.manual_seed(0)
    c, s = lt.randn(5, 8), lt.randn(5, 8)
    i = lt.randint(0, 5, (5, 8))
    p = lt.stack([lt.randperm(5) for _ in range(8)], 1)
    one = lt.tensor([3, 0, 3])
    for f in (
        lambda a, s, i, p, o: a.gather(0, i),
        lambda a, s, i, p, o: a.scatter(0, p, s),
        lambda a, s, i, p, o: a.scatter_add(0, i, s),
        lambda a, s, i, p, o: a.scatter_reduce(0, i, s, "amax"),
        lambda a, s, i, p, o: a.scatter_reduce(0, i, s, "mean"),
        lambda a, s, i, p, o: a.scatter_reduce(0, i, s, "prod"),
        lambda a, s, i, p, o: a.index_add(0, o, s[:3]),
        lambda a, s, i, p, o: a.index_copy(0, o[:2], s[:2]),
        lambda a, s, i, p, o: a.index_select(1, o),
        lambda a, s, i, p, o: a.take(i),
        lambda a, s, i, p, o: a.masked_scatter(a > 0, s),
        lambda a, s, i, p, o: a.index_fill(0, o, 2.0),
        lambda a, s, i, p, o: a.take_along_dim(i, 0),
        lambda a, s, i, p, o: a.put(lt.arange(0, 40, 3, device=a.device), s.flatten()[:14]),
    ):
        close(f(*[t.cuda() for t in (c, s, i, p, one)]), f(c, s, i, p, one))
    before = lt.are_deterministic_algorithms_enabled()
    lt.use_deterministic_algorithms(True)
    try:
        index = lt.randint(0, 50, (20000,), device="cuda")
        source = lt.randn(20000, device="cuda")
        sums = [lt.zeros(50, device="cuda").index_add_(0, index, source).tolist() for _ in range(3)]
        assert sums[0] == sums[1] == sums[2]
        table = lt.randn(50, 16, device="cuda", requires_grad=True)
        grads = []
        for _ in range(3):
            table.grad = None
            (table[index[:5000]].sin()).sum().backward()
            grads.append(table.grad.tolist())
        assert grads[0] == grads[1] == grads[2]
    finally:
        lt.use_deterministic_algorithms(before)


@feature
def float8() -> None:
    """float8 is stored and converted as on the CPU; arithmetic by way of float32."""
    import lamina_tensor as lt

    for dtype in (lt.float8_e4m3fn, lt.float8_e5m2):
        c = lt.tensor(
            [0.0, -0.0, 1.0, 447.0, 464.0, 465.0, 1e6, -1e6, float("inf"), float("nan"), 1e-3, 2e-3, 57344.0, 61440.0]
        )
        got = c.cuda().to(dtype)
        assert got.is_cuda and got.dtype is dtype
        assert got.view(lt.uint8).cpu().tolist() == c.to(dtype).view(lt.uint8).tolist(), dtype
        assert repr(got[2:4]) == repr(c.to(dtype)[2:4]).replace("dtype", "device='cuda:0', dtype")
        assert got.float().cpu().nan_to_num().tolist() == c.to(dtype).float().nan_to_num().tolist()
