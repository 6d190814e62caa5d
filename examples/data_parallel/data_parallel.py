# The same as data_parallel.cc, with PyTorch:
#
#   python3 data_parallel.py
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

INPUT_SIZE, OUTPUT_SIZE = 5, 2
BATCH_SIZE, DATA_SIZE = 30, 100


class RandomDataset(Dataset):
    def __init__(self, size, length):
        self.len = length
        self.data = torch.randn(length, size)

    def __getitem__(self, index):
        return self.data[index]

    def __len__(self):
        return self.len


class Model(nn.Module):
    def __init__(self, input_size, output_size):
        super().__init__()
        self.fc = nn.Linear(input_size, output_size)

    def forward(self, input):
        output = self.fc(input)
        print("\tIn Model: input size", input.size(),
              "output size", output.size())
        return output


def main():
    loader = DataLoader(RandomDataset(INPUT_SIZE, DATA_SIZE),
                        batch_size=BATCH_SIZE, shuffle=True)
    model = Model(INPUT_SIZE, OUTPUT_SIZE)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if torch.cuda.device_count() > 1:
        print("Let's use", torch.cuda.device_count(), "GPUs!")
    model = nn.DataParallel(model).to(device)
    for data in loader:
        input = data.to(device)
        output = model(input)
        assert output.size() == (len(input), OUTPUT_SIZE)
        print("Outside: input size", input.size(),
              "output_size", output.size())


if __name__ == "__main__":
    main()
