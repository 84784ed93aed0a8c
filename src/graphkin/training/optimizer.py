"""Adam over all parameters as one array: one operator where there would be one for each."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphkin.training.config import TrainConfig


class FlatOptimizer:
    """Clips and applies gradients.

    The parameters of the module become views of one array, and so do their gradients. A step
    of a small network would otherwise spend as long on dozens of tiny updates as on a
    propagation step.
    """

    def __init__(self, module: nn.Module, config: TrainConfig) -> None:
        parameters = list(module.parameters())
        self.flat = nn.Parameter(torch.cat([p.detach().flatten() for p in parameters]))
        self.flat.grad = torch.zeros_like(self.flat)
        start = 0
        for parameter in parameters:
            stop = start + parameter.numel()
            parameter.data = self.flat.detach()[start:stop].view_as(parameter)
            parameter.grad = self.flat.grad[start:stop].view_as(parameter)
            start = stop
        self._clip = config.clip
        kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.AdamW
        decay = config.weight_decay
        self._optimizer = kind([self.flat], lr=config.learning_rate, weight_decay=decay, fused=True)

    @property
    def grad(self) -> Tensor:
        """The gradient of all parameters, (size,)."""
        grad = self.flat.grad
        if grad is None:
            raise RuntimeError("the flat gradient was taken away")
        return grad

    def zero_grad(self) -> None:
        self.grad.zero_()

    def step(self, learning_rate: float) -> bool:
        """Applies the clipped gradient; False, and nothing is done, where it is not finite."""
        norm = float(self.grad.norm())
        if not norm < float("inf"):
            return False
        if norm > self._clip:
            self.grad.mul_(self._clip / norm)
        self._optimizer.param_groups[0]["lr"] = learning_rate
        self._optimizer.step()
        return True

    def state(self) -> dict[str, Tensor]:
        """The moments, for a checkpoint; empty before the first step."""
        return dict(self._optimizer.state[self.flat]) if self._optimizer.state else {}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Takes over what :meth:`state` gave."""
        if state:
            device = self.flat.device
            # The count of steps stays where Adam keeps it: beside fused moments.
            self._optimizer.state[self.flat] = {key: t.to(device) for key, t in state.items()}
