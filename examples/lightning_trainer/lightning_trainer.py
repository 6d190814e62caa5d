# The same as lightning_trainer.cc, with PyTorch Lightning, on MNIST's t10k files:
#
#   python lightning_trainer.py FOLDER
import gzip
import shutil
import sys

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import (
    Callback,
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
)
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 8))
        self.decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 784))

    def forward(self, x):
        return self.encoder(x)

    def training_step(self, batch, batch_idx):
        x, _ = batch
        loss = F.mse_loss(self.decoder(self(x)), x)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, _ = batch
        self.log("val_loss", F.mse_loss(self.decoder(self(x)), x), sync_dist=True)

    def test_step(self, batch, batch_idx):
        x, _ = batch
        self.log("test_loss", F.mse_loss(self.decoder(self(x)), x), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


class PrintEpochs(Callback):
    def on_train_epoch_end(self, trainer, module):
        loss = trainer.callback_metrics["train_loss"]
        print(f"epoch {trainer.current_epoch}: loss {loss:.3f}")


def read(name, header):
    with gzip.open(f"{sys.argv[1]}/{name}.gz") as file:
        return torch.frombuffer(bytearray(file.read()[header:]), dtype=torch.uint8)


def run():
    images = read("t10k-images-idx3-ubyte", 16).view(-1, 784)
    images = (images / 255 - 0.1307) / 0.3081
    dataset = TensorDataset(images, read("t10k-labels-idx1-ubyte", 8).long())
    train = torch.utils.data.Subset(dataset, range(8000))
    val = torch.utils.data.Subset(dataset, range(8000, 10000))
    best = ModelCheckpoint("lightning_trainer", monitor="val_loss", save_top_k=2)
    trainer = L.Trainer(
        devices=2,
        strategy="ddp",
        max_epochs=4,
        accumulate_grad_batches=2,
        gradient_clip_val=1.0,
        val_check_interval=0.5,
        callbacks=[
            best,
            EarlyStopping("val_loss"),
            LearningRateMonitor(),
            PrintEpochs(),
        ],
    )
    trainer.fit(
        Autoencoder(),
        DataLoader(train, batch_size=32, shuffle=True),
        DataLoader(val, batch_size=32),
    )
    trainer.test(dataloaders=DataLoader(val, batch_size=32), ckpt_path="best")
    print(f"best: {best.best_model_path} with val_loss {best.best_model_score:.3f}")
    if trainer.is_global_zero:
        shutil.rmtree("lightning_trainer")
    assert best.best_model_score < 0.7, "it has not learnt"


if __name__ == "__main__":
    run()
