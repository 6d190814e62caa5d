"""Hugging Face's side of the benchmark of generation: generate() with a cache.

    torch_generate.py                            answers questions

A question is a line "CASE TEXTS PROMPT TOKENS", and the answer the seconds in
which so many texts of a prompt's length get so many tokens. Models have random
weights, f32, one thread, and the likeliest token follows.
"""

import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import torch_train  # pylint: disable=wrong-import-position

import torch
import transformers

# The sizes of generate.cc, by its names.
CASES = {
    "gpt2": {},
    "char_gpt": {"vocab_size": 65, "n_positions": 320, "n_embd": 192, "n_layer": 6,
                 "n_head": 6},
}


def seconds(model, texts, prompt, tokens):
    inputs = torch.arange(texts * prompt).reshape(texts, prompt)
    inputs = inputs * 7919 % model.config.vocab_size
    begin = time.perf_counter()
    with torch.no_grad():
        model.generate(inputs, attention_mask=torch.ones_like(inputs),
                       max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False,
                       use_cache=True, pad_token_id=0)
    return time.perf_counter() - begin


def main():
    answers = torch_train.take_stdout()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    models = {}
    for line in sys.stdin:
        name, texts, prompt, tokens = line.split()
        if name not in models:
            torch.manual_seed(0)
            config = transformers.GPT2Config(**CASES[name])
            models[name] = transformers.GPT2LMHeadModel(config).eval()
        print(seconds(models[name], int(texts), int(prompt), int(tokens)), file=answers,
              flush=True)


if __name__ == "__main__":
    main()
