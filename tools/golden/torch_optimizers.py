"""LAMB and LARS, which PyTorch lacks, after their papers. States have the names
that they have in the trainer's checkpoints.
"""

import torch


class Lamb(torch.optim.Optimizer):
    """You et al. 2020, arXiv:1904.00962, algorithm 2, phi(z) = z."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6,
                 weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps,
                                      weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state.update(step=0, exp_avg=torch.zeros_like(p),
                                 exp_avg_sq=torch.zeros_like(p))
                state["step"] += 1
                m, v, t = state["exp_avg"], state["exp_avg_sq"], state["step"]
                m.lerp_(p.grad, 1 - beta1)
                v.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                r = (m / (1 - beta1 ** t)) / (
                    (v / (1 - beta2 ** t)).sqrt() + group["eps"])
                r = r + group["weight_decay"] * p
                norm, length = p.norm(), r.norm()
                trust = norm / length if norm > 0 and length > 0 else 1.0
                p.sub_(group["lr"] * trust * r)


class Lars(torch.optim.Optimizer):
    """You et al. 2017, arXiv:1708.03888, algorithm 1."""

    def __init__(self, params, lr, momentum, weight_decay, trust_coefficient,
                 eps=0.0):
        super().__init__(params, dict(lr=lr, momentum=momentum,
                                      weight_decay=weight_decay,
                                      trust_coefficient=trust_coefficient,
                                      eps=eps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            decay = group["weight_decay"]
            for p in group["params"]:
                v = self.state[p].setdefault("momentum_buffer",
                                             torch.zeros_like(p))
                norm, gradient = p.norm(), p.grad.norm()
                local = 1.0
                if norm > 0 and gradient > 0:
                    local = group["trust_coefficient"] * norm / (
                        gradient + decay * norm + group["eps"])
                v.mul_(group["momentum"]).add_(
                    group["lr"] * local * (p.grad + decay * p))
                p.sub_(v)
