// Opens files of weights, of whatever format: safetensors, files of torch.save
// (torch/torch_file.h), model files of llm.c; each alone, or several with an
// index.
//
//   TROUPE_ASSIGN_OR_RETURN(WeightSources weights,
//                           OpenWeightSources(files, "checkpoints/gpt2"));
//   weights.path;                        // ".../model.safetensors.index.json"
//   weights.sources[0]->tensors()[0].name;
//
// The format is seen by the first bytes, whatever the name.

#ifndef NN_SERIALIZE_WEIGHT_SOURCES_H_
#define NN_SERIALIZE_WEIGHT_SOURCES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/files/file_system.h"
#include "nn/serialize/tensor_source.h"

namespace troupe::nn {

struct WeightSources {
  std::string path;  // path of the file, or of the index
  std::vector<std::unique_ptr<const TensorSource>> sources;
};

// `path` is a file, an index ("*.index.json"), or a folder with a
// model.safetensors, model.safetensors.index.json, pytorch_model.bin or
// pytorch_model.bin.index.json, of which the first is taken.
//   kNotFound: the folder has none; says what it looked for.
//   kDataLoss: the index and its files contradict each other.
//   other: those of SafetensorsFile::Open(), OpenTorchFile(), OpenLlmcFile().
absl::StatusOr<WeightSources> OpenWeightSources(base::FileSystem& files,
                                                const std::string& path);

}  // namespace troupe::nn

#endif  // NN_SERIALIZE_WEIGHT_SOURCES_H_
