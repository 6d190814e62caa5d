// A set of small integers that finds its smallest one fast: the actions of a
// table that may start. The caller owns its memory, so that a state with
// several parts can be copied at once.
//
//   std::vector<std::uint64_t> memory(ReadySet::WordsFor(/*size=*/5));
//   ReadySet ready(memory.data(), /*size=*/5);   // of 0 .. 4
//   ready.Insert(3);
//   ready.First();   // 3; -1 where it is empty
//
// It has two levels of bits: First looks at size / 4096 words, then at one.
// Insert and Erase take constant time. Memory of zeros is an empty set.

#ifndef PIPELINE_TABLE_READY_SET_H_
#define PIPELINE_TABLE_READY_SET_H_

#include <cstddef>
#include <cstdint>

namespace troupe::pipeline {

class ReadySet {
 public:
  static std::size_t WordsFor(int size) {
    return UsedWords(size) + (static_cast<std::size_t>(size) + 63) / 64;
  }

  ReadySet() = default;
  ReadySet(std::uint64_t* memory, int size)
      : used_(memory), used_words_(UsedWords(size)) {}

  void Insert(int i) {
    const unsigned at = i;
    bits()[at / 64] |= Bit(at);
    used_[at / 4096] |= Bit(at / 64);
  }
  void Erase(int i) {
    const unsigned at = i;
    std::uint64_t& word = bits()[at / 64];
    word &= ~Bit(at);
    if (word == 0) used_[at / 4096] &= ~Bit(at / 64);
  }
  int First() const {
    for (std::size_t i = 0; i < used_words_; ++i) {
      if (used_[i] == 0) continue;
      const std::size_t word = i * 64 + __builtin_ctzll(used_[i]);
      return static_cast<int>(word * 64 + __builtin_ctzll(bits()[word]));
    }
    return -1;
  }

 private:
  static std::size_t UsedWords(int size) {
    return (static_cast<std::size_t>(size) + 4095) / 4096;
  }
  static std::uint64_t Bit(unsigned i) { return std::uint64_t{1} << (i % 64); }
  std::uint64_t* bits() const { return used_ + used_words_; }

  // A bit for each word of bits() that is not 0; behind them bits(), with a bit
  // for each number that is in the set.
  std::uint64_t* used_ = nullptr;
  std::size_t used_words_ = 0;
};

}  // namespace troupe::pipeline

#endif  // PIPELINE_TABLE_READY_SET_H_
