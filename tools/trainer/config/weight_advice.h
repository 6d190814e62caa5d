// Settings that make a model fit the weights it is to begin with.
//
//   const nn::WeightDifferences differences = weights.Compare(*model);
//   WeightAdvice(config, sample, differences);
//   // "set model.stem = "imagenet" (its conv1.weight is 7x7) and
//   //  model.num_classes = 1000"
//
// It looks at shapes and names that only one side has: the size of a table
// tells the vocabulary, the last block the depth. Heads cannot be seen in a
// file; if the width is another, they follow from the 64 features a head of
// GPT-2 and ViT.

#ifndef TOOLS_TRAINER_CONFIG_WEIGHT_ADVICE_H_
#define TOOLS_TRAINER_CONFIG_WEIGHT_ADVICE_H_

#include <string>

#include "data/dataset.h"
#include "nn/serialize/weight_file.h"
#include "tools/trainer/config/config.h"

namespace troupe::tools {

// Returns what to set, as the last clauses of an error; empty if no key is
// known to help. `sample` describes the samples that the model takes.
std::string WeightAdvice(const TrainerConfig& config,
                         const data::SampleSpec& sample,
                         const nn::WeightDifferences& differences);

}  // namespace troupe::tools

#endif  // TOOLS_TRAINER_CONFIG_WEIGHT_ADVICE_H_
