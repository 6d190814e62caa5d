"""What every network of the tester has beside its forward pass.

    class Network(Module): ...
    network.set_dropout(seed=1, step=0, positions=range(16))
    network.void_biases(), network.void_elements()
"""

from torch import nn

from parity.dropout import Dropout


class Module(nn.Module):

    # Names of layers at which a stage may begin; None: the numbers of `layers`.
    places = None
    # Names of those that may be recomputed.
    block_names = ()
    # The texts of model.layers.
    layers = ()

    def set_dropout(self, seed, step, positions):
        """Where dropout draws next: the step, and the number of each sample in
        the global batch."""
        for module in self.modules():
            if isinstance(module, Dropout):
                module.drawn_by = seed, step, positions

    def has_batch_norm(self):
        return any(isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d))
                   for module in self.modules())

    def void_biases(self):
        """Names of biases that a norm right behind takes away again: their
        gradients are 0 but for rounding, so they cannot be compared."""
        return set()

    def void_elements(self):
        """{name: slice} of elements of parameters of which the same holds, and
        which no other number depends on."""
        return {}
