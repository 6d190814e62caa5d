// Exports a job's model to other programs: its weights in one file that PyTorch
// loads, and its outputs for some samples, to compare with.
//
//   TROUPE_RETURN_IF_ERROR(RunJob(spec).status());
//   TROUPE_RETURN_IF_ERROR(ExportModel(spec, "mixer.safetensors"));
//   TROUPE_RETURN_IF_ERROR(
//       ExportAnswers(spec, /*samples=*/4, "answers.safetensors"));
//
// The weights are those of the newest checkpoint in spec.checkpoint.dir, with
// any number of stages; names and layouts are those of PyTorch's modules:
//
//     model.load_state_dict(load_file("mixer.safetensors"))
//     answers = load_file("answers.safetensors")
//     torch.testing.assert_close(model(answers["input"]), answers["output"])
//
// where an image of answers["input"] is (H, W, C). examples/own_model has a
// whole program for either side.
//
// Reads and computes in the caller's thread, on the host.

#ifndef ACTORS_INFERENCE_EXPORT_MODEL_H_
#define ACTORS_INFERENCE_EXPORT_MODEL_H_

#include <string>

#include "absl/status/status.h"
#include "actors/spec/job_spec.h"

namespace troupe::actors {

// Writes all parameters and buffers to the file `path`.
//   kNotFound: there is no checkpoint.
//   other: from the checkpoint or the file system; names the file.
absl::Status ExportModel(const JobSpec& spec, const std::string& path);

// Writes the tensors "input" and "output" of the first `samples` samples of
// spec.test, or if that is null, of spec.train.
//   kOutOfRange: the dataset has fewer.
//   kInvalidArgument: spec.model is not the model of the checkpoint; names the
//     parameter.
//   other: the same as ExportModel().
absl::Status ExportAnswers(const JobSpec& spec, int samples,
                           const std::string& path);

}  // namespace troupe::actors

#endif  // ACTORS_INFERENCE_EXPORT_MODEL_H_
