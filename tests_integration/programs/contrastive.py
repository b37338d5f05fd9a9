"""Contrastive learning: two views, normalised projections, a mask of positives, a queue kept as a buffer, EMA."""

from __future__ import annotations

import copy
from typing import Any

from formula import fill, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F


def nt_xent(z1, z2, temperature=0.5):
    n = z1.shape[0]
    z = F.normalize(torch.cat([z1, z2], dim=0), p=2, dim=1)
    sim = torch.mm(z, z.t()) / temperature
    sim.fill_diagonal_(float("-inf"))
    targets = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(z.device)
    return F.cross_entropy(sim, targets)


def supervised_contrastive(features, labels, temperature=0.2):
    labels = labels.contiguous().view(-1, 1)
    mask = torch.eq(labels, labels.T).float()
    logits = features @ features.T / temperature
    logits_max, _ = torch.max(logits, dim=1, keepdim=True)
    logits = logits - logits_max.detach()
    batch = mask.shape[0]
    logits_mask = torch.scatter(torch.ones_like(mask), 1, torch.arange(batch).view(-1, 1), 0)
    mask = mask * logits_mask
    log_prob = logits - torch.log((torch.exp(logits) * logits_mask).sum(1, keepdim=True))
    return -((mask * log_prob).sum(1) / mask.sum(1).clamp(min=1)).mean()


class MoCo(nn.Module):
    def __init__(self, dim=8, K=16, m=0.9, T=0.3):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q = nn.Sequential(nn.Linear(10, 12), nn.ReLU(), nn.Linear(12, dim))
        self.encoder_k = copy.deepcopy(self.encoder_q)
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", F.normalize(wave(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update_key_encoder(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _dequeue_and_enqueue(self, keys):
        batch_size = keys.shape[0]
        ptr = int(self.queue_ptr)
        assert self.K % batch_size == 0
        self.queue[:, ptr : ptr + batch_size] = keys.T
        self.queue_ptr[0] = (ptr + batch_size) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update_key_encoder()
            k = F.normalize(self.encoder_k(im_k), dim=1)
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long)
        self._dequeue_and_enqueue(k)
        return F.cross_entropy(logits, labels)


def run(compile: Any) -> list[Any]:
    model = fill(MoCo())
    trainable = filter(lambda p: p.requires_grad, model.parameters())
    optimizer = torch.optim.SGD(trainable, lr=0.1, momentum=0.9, nesterov=True)
    forward = compile(model.forward)
    results = []
    for k in range(4):
        loss = forward(wave(4, 10, phase=k), wave(4, 10, phase=k) + 0.1 * wave(4, 10, phase=k + 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results.append(loss.item())
    pair = compile(lambda a, b: nt_xent(model.encoder_q(a), model.encoder_q(b)))
    results.append(pair(wave(6, 10), wave(6, 10, phase=2)).item())
    features = F.normalize(wave(6, 5), dim=1).requires_grad_()
    loss = compile(supervised_contrastive)(features, torch.tensor([0, 1, 0, 2, 1, 0]))
    loss.backward()
    return [*results, model.queue_ptr.item(), model.queue[0], loss.item(), features.grad]
