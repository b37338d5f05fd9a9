"""Siamese network: shared convolutions, cosine, triplet and margin losses, forward hooks that read features."""

from __future__ import annotations

from typing import Any

from formula import fill, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(
            nn.ReflectionPad2d(1),
            nn.Conv2d(1, 4, kernel_size=3),
            nn.ReLU(inplace=True),
            nn.InstanceNorm2d(4, affine=True),
            nn.ZeroPad2d(1),
            nn.Conv2d(4, 6, kernel_size=3, stride=2),
            nn.PReLU(),
            nn.AdaptiveMaxPool2d(2),
            nn.Flatten(),
        )
        self.fc = nn.Sequential(nn.Linear(24, 16), nn.Softplus(), nn.Linear(16, 5))

    def forward_once(self, x):
        output = self.cnn(x)
        output = output.view(output.size()[0], -1)
        return self.fc(output)

    def forward(self, *images):
        return tuple(self.forward_once(image) for image in images)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, output1, output2, label):
        euclidean = F.pairwise_distance(output1, output2, keepdim=True)
        return torch.mean(
            (1 - label) * torch.pow(euclidean, 2) + label * torch.pow(torch.clamp(self.margin - euclidean, min=0.0), 2)
        )


def run(compile: Any) -> list[Any]:
    net = fill(SiameseNetwork())
    contrastive, triplet = ContrastiveLoss(), nn.TripletMarginLoss(margin=1.0, p=2)
    cosine = nn.CosineEmbeddingLoss(margin=0.1)
    optimizer = torch.optim.Adam(
        [{"params": net.cnn.parameters(), "lr": 1e-3}, {"params": net.fc.parameters()}], lr=1e-2
    )

    def step(anchor, positive, negative, label):
        optimizer.zero_grad()
        a, p, n = net(anchor, positive, negative)
        loss = triplet(a, p, n) + contrastive(a, n, label) + cosine(a, p, 1 - 2 * label.squeeze(1))
        loss.backward()
        optimizer.step()
        return loss, F.cosine_similarity(a, p), torch.cdist(a, n)

    step = compile(step)
    results = []
    for k in range(3):
        images = [wave(3, 1, 9, 9, phase=k + 5 * j) for j in range(3)]
        loss, similarity, distances = step(*images, torch.tensor([[1.0], [0.0], [1.0]]))
        results += [loss.item(), similarity.detach()]
    features = {}

    def get_features(name):
        def hook(model, input, output):
            features[name] = output.detach()

        return hook

    handle = net.fc[0].register_forward_hook(get_features("fc0"))
    net(wave(1, 1, 9, 9))
    handle.remove()
    return [*results, distances.detach(), features["fc0"]]
