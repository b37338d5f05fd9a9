"""Older spellings that programs still contain: FloatTensor, Variable, type(), .data, checks for cuda."""

from __future__ import annotations

from typing import Any

import numpy as np
from formula import fill, wave

import lamina as torch
import lamina.backends.cudnn as cudnn
import lamina.nn as nn
import lamina.nn.functional as F
from lamina.autograd import Variable


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 8), nn.Linear(8, 3)
        self.scale = nn.Parameter(torch.Tensor(1).fill_(1.0))
        self.offset = nn.Parameter(torch.FloatTensor(3).zero_(), requires_grad=True)

    def forward(self, x):
        x = F.dropout(torch.relu(self.fc1(x)), 0.5, self.training)
        return F.log_softmax(self.fc2(x) * self.scale + self.offset, 1)


def run(compile: Any) -> list[Any]:
    torch.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    torch.backends.cudnn.benchmark = False
    cudnn.deterministic = True
    torch.set_num_threads(torch.get_num_threads())
    torch.set_printoptions(precision=4, sci_mode=False)
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(True)
    use_cuda = torch.cuda.is_available()
    assert torch.cuda.device_count() == 0 or use_cuda
    kwargs = {"num_workers": 1, "pin_memory": True} if use_cuda else {}
    net = fill(Net()).eval()
    if use_cuda:
        net = net.cuda()
    forward = compile(net)
    x = Variable(torch.from_numpy(wave(6, 4).numpy().astype(np.float32)))
    y = Variable(torch.LongTensor([0, 1, 2, 0, 1, 2]))
    losses = []
    for _ in range(3):
        net.zero_grad()
        loss = F.nll_loss(forward(x), y, reduction="sum")
        loss.backward()
        for param in net.parameters():
            param.data -= 0.05 * param.grad.data
        losses.append(float(loss.data))
    byte = (x.data > 0).type(torch.ByteTensor)
    one_hot = torch.FloatTensor(6, 3).zero_().scatter_(1, y.unsqueeze(1), 1)
    prediction = forward(x).data.max(1, keepdim=True)[1]
    correct = prediction.eq(y.data.view_as(prediction)).long().cpu().sum()
    assert isinstance(one_hot, torch.FloatTensor) and x.type().endswith("FloatTensor")
    double = x.type("torch.DoubleTensor")
    assert double.dtype == torch.float64 and torch.is_tensor(double) and torch.is_floating_point(double)
    assert not kwargs and torch.is_grad_enabled() and torch.get_default_dtype() == torch.float32
    total = torch.tensor(losses, dtype=torch.double).numpy().sum().item()
    return [*losses, total, byte.sum().item(), one_hot, int(correct), torch.tensor([1, 2]).type(torch.float).div(2)]
