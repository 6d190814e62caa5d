#include "tests/actors/jobs/bits/job_bits.h"

#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/files/file_system.h"
#include "base/fnv_hash.h"
#include "gtest/gtest.h"
#include "pipeline/plan_json.h"

namespace troupe::actors {
namespace {

std::uint64_t HashOf(absl::string_view bytes) {
  base::FnvHash hash;
  hash.AddBytes(bytes.data(), bytes.size());
  return hash.value();
}

std::string Hex(std::uint64_t value) { return absl::StrCat(absl::Hex(value)); }

std::string Bits(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return Hex(bits);
}

// Returns the names and hashes of the files of tensors in the folder of a
// checkpoint.
std::vector<std::string> FileHashes(const std::string& folder) {
  base::PosixFileSystem files;
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  EXPECT_TRUE(names.ok()) << names.status();
  std::vector<std::string> words;
  if (!names.ok()) return words;
  for (const std::string& name : *names) {
    if (!absl::StrContains(name, ".safetensors") ||
        absl::StrContains(name, ".json")) {
      continue;
    }
    words.push_back(name);
    words.push_back(Hex(HashOf(FileBytes(absl::StrCat(folder, "/", name)))));
  }
  return words;
}

std::string NumbersOf(const Reports& reports) {
  std::vector<std::string> words;
  for (const double loss : reports.losses()) words.push_back(Bits(loss));
  if (reports.checkpoints.empty()) {
    words.push_back("no checkpoint");
  } else {
    for (std::string& word : FileHashes(reports.checkpoints.back())) {
      words.push_back(std::move(word));
    }
  }
  return absl::StrJoin(words, " ");
}

using Field = std::function<double(const StepReport& step)>;

std::string RestOf(const Reports& reports) {
  std::vector<std::string> words;
  const auto append = [&](const std::string& name, const Field& field) {
    words.push_back(name);
    for (const StepReport& step : reports.steps) {
      words.push_back(Bits(field(step)));
    }
  };
  // Appends nothing if all steps have the value of a job without the feature.
  const auto append_unless = [&](double usual, const std::string& name,
                                 const Field& field) {
    const auto is_usual = [&](const StepReport& s) {
      return field(s) == usual;
    };
    if (!absl::c_all_of(reports.steps, is_usual)) append(name, field);
  };
  append("accuracy", [](const StepReport& s) { return s.accuracy; });
  append("lr", [](const StepReport& s) { return s.lr; });
  append_unless(0, "norm", [](const StepReport& s) { return s.grad_norm; });
  append_unless(1, "scale", [](const StepReport& s) { return s.loss_scale; });
  append_unless(0, "skipped", [](const StepReport& s) { return s.skipped; });
  for (const EvaluationReport& evaluation : reports.evaluations) {
    words.push_back(absl::StrCat("evaluation ", evaluation.step, " ",
                                 Bits(evaluation.loss), " ",
                                 Bits(evaluation.accuracy)));
  }
  return absl::StrJoin(words, " ");
}

}  // namespace

JobBits BitsOf(const Reports& reports) {
  EXPECT_FALSE(reports.info.plan.stages.empty()) << "there is no plan";
  return {NumbersOf(reports), RestOf(reports),
          Hex(pipeline::PlanHash(PortablePlan(reports.info.plan)))};
}

pipeline::Plan PortablePlan(const pipeline::Plan& plan) {
  pipeline::Plan portable = plan;
  portable.kernels.clear();
  portable.algorithms.clear();
  return portable;
}

}  // namespace troupe::actors
