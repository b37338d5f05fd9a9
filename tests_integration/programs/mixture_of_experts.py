"""Mixture of experts: top-k routing, load balancing, dense dispatch by one_hot and einsum, and a loop over experts."""

from __future__ import annotations

from typing import Any

from formula import fill, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(dim, hidden), nn.Linear(hidden, dim), nn.Linear(dim, hidden)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class LoopMoE(nn.Module):
    """Routes tokens to experts with index_add_, as sparse implementations do."""

    def __init__(self, dim=8, hidden=16, num_experts=4, top_k=2):
        super().__init__()
        self.num_experts, self.top_k = num_experts, top_k
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.experts = nn.ModuleList([Expert(dim, hidden) for _ in range(num_experts)])

    def forward(self, hidden_states):
        batch_size, sequence_length, hidden_dim = hidden_states.shape
        hidden_states = hidden_states.view(-1, hidden_dim)
        router_logits = self.gate(hidden_states)
        routing_weights = F.softmax(router_logits, dim=1, dtype=torch.float)
        routing_weights, selected_experts = torch.topk(routing_weights, self.top_k, dim=-1)
        routing_weights /= routing_weights.sum(dim=-1, keepdim=True)
        final_hidden_states = torch.zeros((batch_size * sequence_length, hidden_dim), dtype=hidden_states.dtype)
        expert_mask = F.one_hot(selected_experts, num_classes=self.num_experts).permute(2, 1, 0)
        for expert_idx in range(self.num_experts):
            idx, top_x = torch.where(expert_mask[expert_idx])
            current_state = hidden_states[None, top_x].reshape(-1, hidden_dim)
            current = self.experts[expert_idx](current_state) * routing_weights[top_x, idx, None]
            final_hidden_states.index_add_(0, top_x, current.to(hidden_states.dtype))
        return final_hidden_states.reshape(batch_size, sequence_length, hidden_dim), router_logits


class DenseMoE(nn.Module):
    def __init__(self, dim=8, hidden=16, num_experts=4, capacity=6):
        super().__init__()
        self.num_experts, self.capacity = num_experts, capacity
        self.gate = nn.Parameter(torch.randn(dim, num_experts))
        self.w_in = nn.Parameter(torch.randn(num_experts, dim, hidden))
        self.w_out = nn.Parameter(torch.randn(num_experts, hidden, dim))

    def forward(self, x):
        gates = torch.einsum("bnd,de->bne", x, self.gate).softmax(dim=-1)
        gate, index = gates.max(dim=-1)
        mask = F.one_hot(index, self.num_experts).float()
        density = mask.mean(dim=-2)
        aux_loss = (density * gates.mean(dim=-2)).mean() * self.num_experts**2
        position = (torch.cumsum(mask, dim=-2) - 1) * mask
        mask = mask * (position < self.capacity).float()
        position = position.sum(-1).long()
        kept = mask.sum(dim=-1)
        slot = F.one_hot(position.clamp(max=self.capacity - 1), self.capacity).float()
        combine = (gate * kept)[..., None, None] * mask[..., None] * slot[..., None, :]
        dispatch = combine.bool().to(x)
        inputs = torch.einsum("bnd,bnec->ebcd", x, dispatch)
        hidden = F.gelu(torch.einsum("ebcd,edh->ebch", inputs, self.w_in))
        outputs = torch.einsum("ebch,ehd->ebcd", hidden, self.w_out)
        return torch.einsum("ebcd,bnec->bnd", outputs, combine), aux_loss


def run(compile: Any) -> list[Any]:
    results = []
    for kind in (DenseMoE, LoopMoE):
        model = fill(kind())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def train_step(x, model=model, optimizer=optimizer):
            out, extra = model(x)
            loss = (out - x).pow(2).mean() + 0.01 * extra.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss, out.detach()

        step = compile(train_step)
        for k in range(3):
            loss, out = step(wave(2, 10, 8, phase=k))
            results.append(loss.item())
        results.append(out.mean(-1))
    return results
