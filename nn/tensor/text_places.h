// Places in texts of the samples of a batch, if a language model keeps the keys
// and values of tokens that it has seen (nn/autograd/kv_cache.h).
//
//   TextPlaces places;
//   places.texts = 8;              // the model keeps up to 8 texts at once,
//   places.context = 1024;         // each of up to 1024 tokens
//   // x [2, T, ...]: tokens 64.. of text 0, and tokens 17.. of text 3
//   places.rows = {{0, 64}, {3, 17}};
//
// Plain data.

#ifndef NN_TENSOR_TEXT_PLACES_H_
#define NN_TENSOR_TEXT_PLACES_H_

#include <cstdint>
#include <vector>

namespace troupe::nn {

struct TextPlaces {
  struct Row {
    std::int64_t text = 0;  // below `texts`; -1: the row is of no text
    std::int64_t past = 0;  // number of the text's tokens before the row
  };
  std::int64_t texts = 0;
  std::int64_t context = 0;
  std::vector<Row> rows;  // empty: nothing is kept
  // The only position of the new tokens whose output is asked for; -1: all. A
  // model may give the output of one row at that position alone.
  std::int64_t wanted = -1;

  bool empty() const { return rows.empty(); }
};

}  // namespace troupe::nn

#endif  // NN_TENSOR_TEXT_PLACES_H_
