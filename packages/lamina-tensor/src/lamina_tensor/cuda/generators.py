"""Random numbers on devices: one generator for each, with its state there. Numbers are the CPU's for the same seed."""

from __future__ import annotations

from typing import Any

from ..random import Generator
from .activation import cuda_device, device_index, is_active

__all__ = [
    "default_generator", "default_generators", "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed",
    "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all",
]  # fmt: skip

_GENERATORS: dict[int, Generator] = {}
_SEED: dict[str, int | None] = {"all": None}
"""The seed that devices not used yet begin with."""


def default_generator(device: Any = None) -> Generator:
    """What is drawn from on a device when no generator is given."""
    index = device_index(device)
    found = _GENERATORS.get(index)
    if found is None:
        found = _GENERATORS[index] = Generator(cuda_device(index))
        found.manual_seed(_SEED["all"] or 0)
    return found


class _Generators:
    """``cuda.default_generators[1]``."""

    def __getitem__(self, index: int) -> Generator:
        return default_generator(index)

    def __len__(self) -> int:
        from .devices import device_count

        return device_count()


default_generators = _Generators()


def used() -> list[Generator]:
    """The generators of the devices that were drawn from."""
    return list(_GENERATORS.values())


def forget() -> None:
    """Drop the generators: their states are of a device library that is no longer used."""
    _GENERATORS.clear()


def manual_seed(seed: int) -> None:
    """Seed the current device's generator (kept for its first use where no device was used yet)."""
    if is_active():
        default_generator().manual_seed(seed)
    else:
        _SEED["all"] = seed


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all devices (kept for their first use where they were not used yet)."""
    _SEED["all"] = seed
    for generator in _GENERATORS.values():
        generator.manual_seed(seed)


def seed() -> int:
    """Seed the current device's generator from the clock."""
    return default_generator().seed()


def seed_all() -> None:
    """Seed all generators with one number from the clock."""
    import time

    manual_seed_all(time.time_ns() % (1 << 63))


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return default_generator().initial_seed()


def get_rng_state(device: Any = None) -> Any:
    """A copy of a device's state ``[seed, offset]``, on the CPU as PyTorch gives it."""
    return default_generator(device).get_state().cpu()


def set_rng_state(new_state: Any, device: Any = None) -> None:
    """Continue from a copied state."""
    default_generator(device).set_state(new_state)


def get_rng_state_all() -> list[Any]:
    """The states of all devices."""
    return [get_rng_state(i) for i in range(len(default_generators))]


def set_rng_state_all(new_states: list[Any]) -> None:
    """Set the states of all devices."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)
