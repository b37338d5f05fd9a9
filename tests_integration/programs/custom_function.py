"""Custom autograd functions: a straight-through estimator, a function with saved tensors, gradient reversal."""

from __future__ import annotations

from typing import Any

from formula import fill, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F
from lamina.autograd import Function


class BinarizeSTE(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.sign()

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input.abs() > 1] = 0
        return grad_input


class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.lambd, None


class SwishFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        result = i * torch.sigmoid(i)
        ctx.save_for_backward(i)
        return result

    @staticmethod
    def backward(ctx, grad_output):
        i = ctx.saved_tensors[0]
        sigmoid_i = torch.sigmoid(i)
        return grad_output * (sigmoid_i * (1 + i * (1 - sigmoid_i)))


class VectorQuantizer(nn.Module):
    def __init__(self, num=6, dim=4, beta=0.25):
        super().__init__()
        self.beta = beta
        self.embedding = nn.Embedding(num, dim)

    def forward(self, z):
        d = (
            torch.sum(z**2, dim=1, keepdim=True)
            + torch.sum(self.embedding.weight**2, dim=1)
            - 2 * torch.matmul(z, self.embedding.weight.t())
        )
        indices = torch.argmin(d, dim=1).unsqueeze(1)
        one_hot = torch.zeros(indices.shape[0], self.embedding.num_embeddings, device=z.device)
        one_hot.scatter_(1, indices, 1)
        z_q = torch.matmul(one_hot, self.embedding.weight).view(z.shape)
        loss = torch.mean((z_q.detach() - z) ** 2) + self.beta * torch.mean((z_q - z.detach()) ** 2)
        z_q = z + (z_q - z).detach()
        e_mean = torch.mean(one_hot, dim=0)
        perplexity = torch.exp(-torch.sum(e_mean * torch.log(e_mean + 1e-10)))
        return z_q, loss, perplexity


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 4), nn.Linear(4, 6)
        self.domain, self.vq = nn.Linear(4, 1), VectorQuantizer()

    def forward(self, x):
        h = SwishFunction.apply(self.encoder(x))
        domain = self.domain(GradReverse.apply(h, 0.5))
        z, vq_loss, perplexity = self.vq(h)
        return self.decoder(z) + self.decoder(BinarizeSTE.apply(h)), domain, vq_loss, perplexity


def run(compile: Any) -> list[Any]:
    net = fill(Net())
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    @compile
    def step(x, label):
        recon, domain, vq_loss, perplexity = net(x)
        loss = F.mse_loss(recon, x) + vq_loss + F.binary_cross_entropy_with_logits(domain.squeeze(), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach(), perplexity.detach()

    results = []
    for k in range(3):
        loss, perplexity = step(wave(8, 6, phase=k), (torch.arange(8) % 2).float())
        results += [loss.item(), perplexity.item()]
    return [*results, net.encoder.weight.grad]
