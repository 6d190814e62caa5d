# The same as deepspeed_engine.cc, with DeepSpeed, on MNIST's t10k files:
#
#   deepspeed --num_gpus=2 deepspeed_engine.py FOLDER
import gzip
import shutil
import sys

import deepspeed
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import TensorDataset

CONFIG = {
    "train_micro_batch_size_per_gpu": 16,
    "gradient_accumulation_steps": 4,
    "gradient_clipping": 1.0,
    "optimizer": {"type": "Adam", "params": {"lr": 0.002}},
}


def read(name, header):
    with gzip.open(f"{sys.argv[1]}/{name}.gz") as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def run():
    images = read("t10k-images-idx3-ubyte", 16).view(-1, 784)
    images = (images / 255 - 0.1307) / 0.3081
    dataset = TensorDataset(images, read("t10k-labels-idx1-ubyte", 8).long())
    model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    engine, _, loader, _ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        training_data=dataset,
        config=CONFIG,
    )
    for epoch in range(2):
        epoch_loss = 0.0
        for x, y in loader:
            x, y = x.to(engine.device), y.to(engine.device)
            loss = F.cross_entropy(engine(x), y)
            epoch_loss += loss.item() / len(loader)
            engine.backward(loss)
            engine.step()
        if engine.global_rank == 0:
            print(f"epoch {epoch}: loss {epoch_loss:.3f} after {engine.global_steps} updates")
        engine.save_checkpoint("deepspeed_engine", client_state={"epoch": epoch})
    tag, client = engine.load_checkpoint("deepspeed_engine")
    torch.distributed.barrier()
    if engine.global_rank == 0:
        print(f"{tag} is of epoch {client['epoch']}")
        shutil.rmtree("deepspeed_engine")
    assert epoch_loss < 1, "it has not learnt"


if __name__ == "__main__":
    run()
