"""Policy gradient: Categorical, sampling by multinomial, discounted returns, actor and critic, entropy bonus."""

from __future__ import annotations

from typing import Any

from formula import fill, tokens, wave

import lamina as torch
import lamina.nn as nn
import lamina.nn.functional as F
import lamina.optim as optim
from lamina.distributions import Categorical, Normal


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 16)
        self.action_head = nn.Linear(16, 3)
        self.value_head = nn.Linear(16, 1)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def discounted(rewards, gamma=0.9):
    returns, R = [], 0.0
    for r in rewards[::-1]:
        R = r + gamma * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    return (returns - returns.mean()) / (returns.std() + 1e-6)


def run(compile: Any) -> list[Any]:
    torch.manual_seed(3)
    policy = fill(Policy())
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)

    def select_action(state):
        probs, value = policy(torch.from_numpy(state).float().unsqueeze(0))
        m = Categorical(probs)
        action = m.sample()
        policy.saved_log_probs.append(m.log_prob(action))
        return action.item(), value

    def update(states, actions, returns):
        probs, values = policy(states)
        dist = Categorical(probs=probs)
        advantage = returns - values.squeeze(-1)
        actor = -(dist.log_prob(actions) * advantage.detach()).mean()
        critic = F.smooth_l1_loss(values.squeeze(-1), returns)
        loss = actor + 0.5 * critic - 0.01 * dist.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    update = compile(update)
    results = []
    for k in range(3):
        returns = discounted([float(r) for r in tokens(7, below=3, phase=k)])
        results.append(update(wave(7, 4, phase=k), tokens(7, below=3, phase=k + 2), returns).item())
    drawn = {select_action(wave(4, phase=k).numpy())[0] for k in range(20)}
    probs, _ = policy(wave(50, 4))
    actions = probs.multinomial(num_samples=1)
    chosen = probs.gather(1, actions).log()
    assert chosen.shape == (50, 1) and bool((chosen <= 0).all()) and drawn <= {0, 1, 2}
    loss = torch.cat(policy.saved_log_probs).neg().sum()
    loss.backward()
    gaussian = Normal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    results += [gaussian.log_prob(torch.tensor(0.5)), gaussian.entropy(), gaussian.rsample((4,)).shape]
    return results
