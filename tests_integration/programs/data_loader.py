"""Training over a DataLoader with own Dataset, TensorDataset, random_split, collate function and early stopping."""

from __future__ import annotations

from typing import Any

from formula import fill, tokens, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F
from lamina.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Sentences(Dataset):
    def __init__(self, count):
        self.items = [(tokens(2 + k % 4, below=9, phase=k) + 1, k % 3) for k in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        return self.items[idx]


def collate(batch):
    sequences, labels = zip(*batch)
    padded = nn.utils.rnn.pad_sequence(sequences, batch_first=True)
    return padded, torch.tensor(labels), torch.as_tensor([len(s) for s in sequences])


class BagClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(10, 6, padding_idx=0)
        self.lin = nn.Linear(6, 3)

    def forward(self, ids, lengths):
        return self.lin(self.emb(ids).sum(1) / lengths[:, None])


def run(compile: Any) -> list[Any]:
    results = []
    model = fill(BagClassifier())
    opt = torch.optim.Adagrad(model.parameters(), lr=0.1)

    @compile
    def step(ids, labels, lengths):
        opt.zero_grad()
        loss = F.cross_entropy(model(ids, lengths), labels)
        loss.backward()
        opt.step()
        return loss

    loader = DataLoader(Sentences(10), batch_size=4, shuffle=False, num_workers=0, collate_fn=collate, drop_last=False)
    for epoch in range(2):
        running_loss = 0.0
        for i, (ids, labels, lengths) in enumerate(loader):
            running_loss += step(ids, labels, lengths).item() * ids.size(0)
        results.append(running_loss / len(loader.dataset))

    dataset = TensorDataset(wave(12, 3), wave(12))
    generator = torch.Generator().manual_seed(0)
    train_set, val_set = random_split(dataset, [8, 4], generator=generator)
    assert len(train_set) == 8 and sorted(train_set.indices + val_set.indices) == list(range(12))
    regression = fill(nn.Linear(3, 1))
    sgd = torch.optim.SGD(regression.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(sgd, mode="min", factor=0.5, patience=0, threshold=0.5)
    fit = compile(lambda x, y: F.mse_loss(regression(x).squeeze(-1), y))
    for epoch in range(4):
        for x, y in DataLoader(dataset, batch_size=5):
            sgd.zero_grad()
            loss = fit(x, y)
            loss.backward()
            sgd.step()
        scheduler.step(loss.item())
        results.append(loss.item())
    shuffled = torch.cat([x for x, _ in DataLoader(dataset, batch_size=5, shuffle=True)])
    assert torch.equal(shuffled.sort(0).values, wave(12, 3).sort(0).values)
    return [*results, sgd.param_groups[0]["lr"], len(DataLoader(dataset, batch_size=5, drop_last=True))]
