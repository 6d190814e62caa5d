// Declares names that the usage comments in nn/generate/ leave undeclared.

#ifndef TESTS_USAGE_WORDS_NN_GENERATE_H_
#define TESTS_USAGE_WORDS_NN_GENERATE_H_

#include <cstdint>
#include <iostream>
#include <vector>

#include "data/text/tokenizer.h"
#include "nn/generate/generate.h"
#include "nn/generate/stop_sequences.h"
#include "nn/generate/text_batch.h"

namespace troupe::nn::usage {

namespace generate_h {
extern Module& model;
extern Kernels& kernels;
extern const std::vector<std::int32_t> prompt;
extern const data::TokenizerPtr tokenizer;
}  // namespace generate_h

namespace text_batch_h {
extern const LogitsFn logits;
extern Allocator& memory;
extern const GenerateOptions options;
extern TextListener& listener;
extern const std::vector<std::int32_t> prompt;
}  // namespace text_batch_h

namespace token_choice_h {
extern const std::vector<float> logits;
extern const std::vector<std::int32_t> text;
}  // namespace token_choice_h

}  // namespace troupe::nn::usage

#endif  // TESTS_USAGE_WORDS_NN_GENERATE_H_
