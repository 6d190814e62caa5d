"""Makes a small byte pair encoding and texts encoded with it.

    make_bpe.py FOLDER

writes vocab.json, merges.txt and encodings.json (pairs of text and tokens) into
FOLDER. Splitting and merging are those of GPT-2's encoder.py: the pattern as a
regular expression, whose classes are written out from unicodedata, and merging
of all places of the best pair at a time. The code under test has neither.
"""

import collections
import json
import os
import re
import sys
import unicodedata

MERGES = 300

CORPUS = """
It is a truth universally acknowledged, that a single man in possession of a
good fortune, must be in want of a wife. However little known the feelings or
views of such a man may be on his first entering a neighbourhood, this truth is
so well fixed in the minds of the surrounding families, that he is considered
as the rightful property of some one or other of their daughters.
"My dear Mr. Bennet," said his lady to him one day, "have you heard that
Netherfield Park is let at last?" Mr. Bennet replied that he hadn't. "But it is,"
returned she; "for Mrs. Long's just been here, and she's told me all about it."
In 1813, 1,500 copies cost 18 shillings each; caf\u00e9 na\u00efve \u00fcber
\u4f60\u597d \u043f\u0440\u0438\u0432\u0435\u0442 for (int i = 0; i < 10; ++i) {
  sum += x[i];    // the sum
}
"""

TEXTS = [
    "",
    "Hello world",
    "It's what they've said: we'll do, you're here, I'd go, I'm in, can't",
    "IT'S NOT SHE'LL 'tis 'sabc ''s ' s",
    "  two  spaces   three\n\n\nlines\n \t tab\t",
    "trailing   ",
    "\n",
    " ",
    "a 123 4b5 \u00bd\u00b2 \u0664\u0662 1,500.25",
    "caf\u00e9 na\u00efve \u00fcber \u00c5ngstr\u00f6m",
    "\u4f60\u597d, \u4e16\u754c! \u043f\u0440\u0438\u0432\u0435\u0442",
    "emoji \U0001f600\U0001f680 and \u2014 dashes \u201cquoted\u201d",
    "no\u00a0break\u3000wide\u2003em \u2028line",
    "control \x00\x01\x7f\x1c\x1d chars\x85next",
    "e\u0301 combining, \u0e44\u0e17\u0e22 marks",
    "for (int i = 0; i < 10; ++i) {\n  sum += x[i];    // the sum\n}",
    "universally acknowledged neighbourhood considered surrounding",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "thethethethe thththth eeee the the  the",
    "<|endoftext|>",
]

# White_Space of Unicode.
SPACE = "\\t-\\r\\x20\\x85\\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


def members(prefix):
    return "".join(re.escape(chr(c)) for c in range(sys.maxunicode + 1)
                   if unicodedata.category(chr(c)).startswith(prefix))


def make_pattern():
    letters, numbers = members("L"), members("N")
    return re.compile(
        "'s|'t|'re|'ve|'m|'ll|'d| ?[{l}]+| ?[{n}]+| ?[^{s}{l}{n}]+"
        "|[{s}]+(?![^{s}])|[{s}]+".format(l=letters, n=numbers, s=SPACE))


def bytes_to_unicode():
    visible = (list(range(ord("!"), ord("~") + 1))
               + list(range(0xa1, 0xac + 1)) + list(range(0xae, 0xff + 1)))
    table = {b: chr(b) for b in visible}
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + len(table) - len(visible))
    return table


def merged(word, pair):
    out, i = [], 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


def train(words):
    merges = []
    words = [list(word) for word in words]
    while len(merges) < MERGES:
        pairs = collections.Counter(
            pair for word in words for pair in zip(word, word[1:]))
        best = max(pairs.items(), key=lambda entry: (entry[1], entry[0]))[0]
        merges.append(best)
        words = [merged(word, best) for word in words]
    return merges


def main():
    folder = sys.argv[1]
    pattern, table = make_pattern(), bytes_to_unicode()
    visible = lambda text: "".join(table[b] for b in text.encode())
    merges = train([visible(w) for w in pattern.findall(CORPUS)])
    tokens = [table[b] for b in sorted(table, key=lambda b: table[b])]
    tokens += ["".join(pair) for pair in merges] + ["<|endoftext|>"]
    tokens = list(dict.fromkeys(tokens))
    numbers = {token: i for i, token in enumerate(tokens)}
    ranks = {pair: i for i, pair in enumerate(merges)}

    def encode(text):
        out = []
        for piece in pattern.findall(text):
            word = list(visible(piece))
            while True:
                pairs = [p for p in zip(word, word[1:]) if p in ranks]
                if not pairs:
                    break
                word = merged(word, min(pairs, key=ranks.get))
            out += [numbers[token] for token in word]
        return out

    def write(name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    write("vocab.json", json.dumps(numbers) + "\n")
    write("merges.txt", "#version: 0.2\n"
          + "".join("%s %s\n" % pair for pair in merges))
    write("encodings.json", json.dumps(
        [[text, encode(text)] for text in TEXTS], indent=0) + "\n")


main()
