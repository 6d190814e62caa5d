"""Writes small files of CIFAR-10's binary version, whose labels show as
brightness:

    cifar_files.py FOLDER IMAGES_OF_A_TRAINING_FILE TEST_IMAGES
"""

import os
import random
import sys

rng = random.Random(0)


def write(path, count):
    with open(path, "wb") as file:
        for _ in range(count):
            label = rng.randrange(10)
            pixels = [20 * label + rng.randrange(64) for _ in range(3072)]
            file.write(bytes([label] + pixels))


folder, train, test = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.mkdir(folder)
for i in range(1, 6):
    write(f"{folder}/data_batch_{i}.bin", train)
write(f"{folder}/test_batch.bin", test)
