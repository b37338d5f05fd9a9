"""Graph network: messages along edges by index_add and scatter, attention normalised per target node."""

from __future__ import annotations

from typing import Any

from formula import fill, tokens, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F


def scatter_softmax(src, index, num_nodes):
    index = index.unsqueeze(-1).expand_as(src)
    maxima = torch.full((num_nodes, src.size(1)), float("-inf"), dtype=src.dtype)
    maxima = maxima.scatter_reduce(0, index, src.detach(), reduce="amax", include_self=True)
    exp = (src - maxima.gather(0, index)).exp()
    total = torch.zeros(num_nodes, src.size(1), dtype=src.dtype).scatter_add_(0, index, exp)
    return exp / (total.gather(0, index) + 1e-16)


class GCNConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self):
        self.lin.reset_parameters()
        self.bias.data.zero_()

    def forward(self, x, edge_index):
        row, col = edge_index
        deg = torch.zeros(x.size(0), dtype=x.dtype).index_add_(0, col, torch.ones(col.size(0)))
        deg_inv_sqrt = deg.pow(-0.5)
        deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
        norm = deg_inv_sqrt[row] * deg_inv_sqrt[col]
        x = self.lin(x)
        out = torch.zeros_like(x).index_add(0, col, norm.view(-1, 1) * x[row])
        return out + self.bias


class GATConv(nn.Module):
    def __init__(self, in_channels, out_channels, heads):
        super().__init__()
        self.heads, self.out_channels = heads, out_channels
        self.lin = nn.Linear(in_channels, heads * out_channels)
        self.att_src = nn.Parameter(torch.Tensor(1, heads, out_channels))
        self.att_dst = nn.Parameter(torch.Tensor(1, heads, out_channels))
        nn.init.xavier_uniform_(self.att_src)
        nn.init.xavier_uniform_(self.att_dst)

    def forward(self, x, edge_index):
        row, col = edge_index[0], edge_index[1]
        h = self.lin(x).view(-1, self.heads, self.out_channels)
        alpha = (h * self.att_src).sum(-1)[row] + (h * self.att_dst).sum(-1)[col]
        alpha = scatter_softmax(F.leaky_relu(alpha, 0.2), col, x.size(0))
        message = h[row] * alpha.unsqueeze(-1)
        index = col.view(-1, 1, 1).expand_as(message)
        return torch.zeros_like(h).scatter_add_(0, index, message).mean(dim=1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(5, 8), GATConv(8, 4, heads=2)

    def forward(self, x, edge_index, batch):
        x = F.elu(self.conv1(x, edge_index))
        x = F.dropout(x, p=0.0, training=self.training)
        x = self.conv2(x, edge_index)
        pooled = torch.zeros(2, x.size(1)).scatter_reduce(
            0, batch.view(-1, 1).expand_as(x), x, "mean", include_self=False
        )
        return F.log_softmax(x, dim=1), pooled


def run(compile: Any) -> list[Any]:
    model = fill(Net())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

    def train(x, edge_index, batch, y, mask):
        model.train()
        optimizer.zero_grad()
        out, pooled = model(x, edge_index, batch)
        loss = F.nll_loss(out[mask], y[mask]) + pooled.square().mean()
        loss.backward()
        optimizer.step()
        return loss

    train = compile(train)
    y, batch = tokens(10, below=4), (torch.arange(10) >= 6).long()
    results = []
    for k in range(4):
        edges = tokens(2, 24 + 4 * (k // 2), below=10, phase=k)
        results.append(train(wave(10, 5), edges, batch, y, torch.arange(10) % 2 == 0).item())
    with torch.no_grad():
        out, _ = model(wave(10, 5), edges, batch)
    unique, counts = torch.unique(edges[1], return_counts=True)
    return [*results, out.argmax(dim=-1), torch.bincount(edges[1], minlength=10), unique, counts]
