// Whole jobs give the bits that they gave when tests/golden/job_bits.txt was
// written: every loss, and every byte of the last checkpoint's tensors. A
// change that alters a bit on purpose writes the file anew and says so:
//
//   bazel build //tests/actors/jobs:job_bits_test
//   export TROUPE_REWRITE=tests/golden/job_bits.txt
//   bazel-bin/tests/actors/jobs/job_bits_test
//
// The kernels are Troupe's own loops, for every instruction set of this CPU:
// what oneDNN generates depends on the maker of the CPU. The line of an
// instruction set that this CPU lacks is left alone.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "actors/job.h"
#include "base/cpu_isa.h"
#include "base/file_system.h"
#include "base/fnv_hash.h"
#include "gtest/gtest.h"
#include "nn/kernels/cpu/cpu_kernels.h"
#include "nn/models/models.h"
#include "nn/optim/sgd.h"
#include "tests/actors/test_job.h"

namespace troupe::actors {
namespace {

constexpr char kGolden[] = "tests/golden/job_bits.txt";
// A checkpoint of MlpJob() after 5 steps, written with the golden file.
constexpr char kCheckpoint[] = "tests/golden/checkpoints/mlp";

std::uint64_t HashOf(absl::string_view bytes) {
  base::FnvHash hash;
  hash.AddBytes(bytes.data(), bytes.size());
  return hash.value();
}

std::string Hex(std::uint64_t value) { return absl::StrCat(absl::Hex(value)); }

// "3fe1... 3fd2... model 1234... optimizer 5678...": losses as the bits of
// doubles, then the hash of each file of tensors.
std::string BitsOf(const JobSpec& spec) {
  Reports reports;
  const absl::StatusOr<JobResult> result = RunJob(spec, &reports);
  EXPECT_TRUE(result.ok()) << result.status();
  std::string text;
  for (const double loss : reports.losses()) {
    std::uint64_t bits;
    std::memcpy(&bits, &loss, sizeof(bits));
    absl::StrAppend(&text, Hex(bits), " ");
  }
  base::PosixFileSystem files;
  if (reports.checkpoints.empty()) return text + "no checkpoint";
  const std::string& folder = reports.checkpoints.back();
  const absl::StatusOr<std::vector<std::string>> names = files.List(folder);
  EXPECT_TRUE(names.ok()) << names.status();
  for (const std::string& name : *names) {
    if (name.find(".safetensors") == std::string::npos ||
        name.find(".json") != std::string::npos) {
      continue;
    }
    absl::StrAppend(&text, name, " ",
                    Hex(HashOf(FileBytes(absl::StrCat(folder, "/", name)))),
                    " ");
  }
  text.pop_back();
  return text;
}

JobSpec MlpJob() {
  JobSpec spec = TinyCnnJob(/*dp=*/1, /*steps=*/10);
  spec.model = [] { return nn::MakeMlp({28 * 28, 4, 10}, {}); };
  return spec;
}

// A job that each of the golden file's lines is of.
struct Case {
  std::string name;
  JobSpec spec;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.push_back({"lenet", TinyCnnJob(1, 6)});
  cases.push_back({"lenet dp=2", TinyCnnJob(2, 6)});
  JobSpec spec = TinyCnnJob(3, 6);
  spec.plan.global_batch_size = 48;
  spec.plan.buckets.first_bucket_bytes = 4 << 10;
  spec.plan.buckets.bucket_bytes = 32 << 10;
  spec.plan.inline_bytes = 0;
  cases.push_back({"lenet dp=3 buckets launched", spec});
  spec.plan.inline_bytes = 1 << 30;
  cases.push_back({"lenet dp=3 buckets inline", spec});
  spec = TinyCnnJob(2, 6);
  spec.plan.micro_batch_size = 4;
  cases.push_back({"lenet dp=2 micro-batches", spec});
  spec.plan.mesh = pipeline::Mesh(/*dp=*/2, /*pp=*/2);
  spec.plan.cuts = {3};
  cases.push_back({"lenet dp=2 pp=2", spec});
  return cases;
}

std::map<std::string, base::CpuIsa> InstructionSets() {
  std::map<std::string, base::CpuIsa> sets = {
      {"plain", base::CpuIsa::kPlain},
      {"avx2", base::CpuIsa::kAvx2},
      {"avx512", base::CpuIsa::kAvx512}};
  for (auto it = sets.begin(); it != sets.end();) {
    it = it->second <= base::BestCpuIsa() ? std::next(it) : sets.erase(it);
  }
  return sets;
}

void UseOwnLoops(JobSpec& spec, base::CpuIsa isa) {
  spec.kernels = [isa]() -> absl::StatusOr<std::unique_ptr<nn::Kernels>> {
    nn::CpuKernelOptions options;
    options.isa = isa;
    options.onednn = false;
    return nn::CreateCpuKernels(options);
  };
}

// The lines "case: bits" of the golden file, by case.
std::map<std::string, std::string> ReadGolden() {
  std::map<std::string, std::string> lines;
  std::ifstream file(kGolden);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    lines[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return lines;
}

// Compares with the golden file, or writes it anew at the end.
class JobBitsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { golden_ = ReadGolden(); }
  static void TearDownTestSuite() {
    const char* path = std::getenv("TROUPE_REWRITE");
    if (path == nullptr) return;
    std::ofstream file(path);
    file << "# What whole jobs compute, to the bit; tests/actors/"
            "job_bits_test.cc writes it.\n";
    for (const auto& [name, bits] : golden_)
      file << name << ": " << bits << "\n";
  }

  void Compare(const std::string& name, const std::string& bits) {
    if (std::getenv("TROUPE_REWRITE") != nullptr) {
      golden_[name] = bits;
      return;
    }
    ASSERT_EQ(golden_.count(name), 1u) << kGolden << " has no line " << name;
    EXPECT_EQ(golden_[name], bits) << name;
  }

 private:
  static inline std::map<std::string, std::string> golden_;
};

TEST_F(JobBitsTest, AreThoseOfTheGoldenFile) {
  for (const auto& [isa_name, isa] : InstructionSets()) {
    for (Case& one : Cases()) {
      UseOwnLoops(one.spec, isa);
      one.spec.checkpoint.dir = FreshFolder(absl::StrCat(isa_name, one.name));
      Compare(absl::StrCat(one.name, " ", isa_name), BitsOf(one.spec));
    }
  }
}

TEST_F(JobBitsTest, GoOnFromAnOldCheckpoint) {
  JobSpec spec = MlpJob();
  UseOwnLoops(spec, base::CpuIsa::kPlain);
  spec.checkpoint.dir = FreshFolder("resumed");
  if (std::getenv("TROUPE_REWRITE") != nullptr) {
    spec.checkpoint.dir = kCheckpoint;
    spec.checkpoint.every = 5;
    spec.checkpoint.keep = 0;
    ASSERT_TRUE(RunJob(spec).ok());
    base::PosixFileSystem files;
    for (const char* name : {"/step-00000010", "/.lock"}) {
      ASSERT_TRUE(files.RemoveAll(absl::StrCat(kCheckpoint, name)).ok());
    }
    spec.checkpoint.every = 0;
    spec.checkpoint.dir = FreshFolder("resumed");
  }
  const std::string name = "step-00000005";
  base::PosixFileSystem files;
  ASSERT_TRUE(
      files.CreateFolder(absl::StrCat(spec.checkpoint.dir, "/", name)).ok());
  for (const char* file : {"model.safetensors", "model.safetensors.index.json",
                           "optimizer.safetensors", "trainer_state.json"}) {
    const std::string path = absl::StrCat(name, "/", file);
    ASSERT_TRUE(base::WriteWholeFile(
                    files, absl::StrCat(spec.checkpoint.dir, "/", path),
                    FileBytes(absl::StrCat(kCheckpoint, "/", path)))
                    .ok());
  }
  spec.checkpoint.resume = true;
  Compare("mlp resumed plain", BitsOf(spec));
}

}  // namespace
}  // namespace troupe::actors
