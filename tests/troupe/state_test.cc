#include "troupe/state.h"

#include <errno.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/kernels/queued/queued_kernels.h"
#include "nn/kernels/reference/reference_kernels.h"
#include "nn/modules/batch_norm.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/optim/sgd.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/torch/torch_writer.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/base/faulty_file_system.h"
#include "tests/golden/golden_file.h"
#include "tests/nn/testing/tensor_values.h"
#include "troupe/internal/replace_file.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kPyTorchsFile[] = "tests/golden/state_pt.safetensors";

std::string BytesOf(const std::string& path) {
  base::PosixFileSystem files;
  return base::OrThrow(base::ReadWholeFile(files, path, 1 << 20));
}

// A model with memory, and the momentum of SGD, whose wrapper it stands for.
class Trained : public Saved {
 public:
  explicit Trained(nn::Kernels& kernels, std::int64_t inputs = 3) {
    model.Append<nn::Linear>(inputs, 2);
    model.Append<nn::BatchNorm1d>(2);
    nn::ParameterArena::Options options;
    options.kernels = &kernels;
    arena = base::OrThrow(nn::ParameterArena::Create(
        {model.Parameters()}, options, kernels.allocator()));
    base::OrThrow(arena->Initialize(/*seed=*/1));
    base::OrThrow(nn::BindBuffers(model.Buffers(), kernels));
    base::OrThrow(sgd.Attach(*arena));
  }
  void AddTo(State& state) override { state.Add(*arena); }
  void OnLoaded() override { ++loaded; }

  nn::Sequential model;
  std::unique_ptr<nn::ParameterArena> arena;
  nn::Sgd sgd{nn::SgdOptions{/*lr=*/0.1, /*momentum=*/0.9}};
  int loaded = 0;
};

class StateTest : public testing::Test {
 protected:
  // Returns a path of this test in an own folder.
  std::string PathOf(const std::string& name) {
    const std::string folder = absl::StrCat(
        testing::TempDir(), "/",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    EXPECT_TRUE(files_.CreateFolder(folder).ok());
    return absl::StrCat(folder, "/", name);
  }
  std::vector<std::string> FilesOf(const std::string& path) {
    return *files_.List(path.substr(0, path.rfind('/')));
  }
  static nn::Tensor& Weight(Trained& trained) {
    return trained.model.Parameters()[0]->value;
  }
  template <typename Run>
  static std::string ErrorOf(Run run) {
    return base::Try(run).ToString();
  }

  base::PosixFileSystem files_;
  nn::CachingAllocator memory_;
  std::unique_ptr<nn::Kernels> kernels_ = nn::CreateReferenceKernels();
};

TEST_F(StateTest, ReadsPyTorchsFileAndWritesItsBytes) {
  Trained trained(*kernels_);
  std::int64_t epoch = 0;
  double best_loss = 0;
  State state;
  state.Add(trained.model).Add("optimizer", trained);
  state.Add("epoch", epoch).Add("best_loss", best_loss);
  EXPECT_FALSE(Load(state, kPyTorchsFile).any());
  EXPECT_EQ(epoch, 3);
  EXPECT_EQ(best_loss, 0.125);
  EXPECT_EQ(trained.loaded, 1);
  for (const nn::Parameter* p : trained.model.Parameters()) {
    EXPECT_EQ(nn::ValuesOf(p->value),
              nn::GoldenInput(p->name, p->shape.numel(), 1));
  }
  for (const nn::Buffer* b : trained.model.Buffers()) {
    EXPECT_EQ(nn::ValuesOf(b->value),
              b->name == "1.num_batches_tracked"
                  ? std::vector<double>{7}
                  : nn::GoldenInput(b->name, b->shape.numel(), 1));
  }
  const auto& [state_name, momentum] = trained.arena->states()[0];
  EXPECT_EQ(state_name, "momentum_buffer");
  EXPECT_EQ(
      nn::ValuesOf(trained.arena->View(momentum, trained.arena->slots()[0])),
      nn::GoldenInput("optimizer.0.weight.momentum_buffer", 6, 1));
  const std::string path = PathOf("again.safetensors");
  Save(state, path);
  EXPECT_EQ(BytesOf(path), BytesOf(kPyTorchsFile));
}

TEST_F(StateTest, AModelAloneGoesThereAndBack) {
  const std::string path = PathOf("model.safetensors");
  Trained saved(*kernels_), loaded(*kernels_);
  const std::vector<double> values = nn::ValuesOf(Weight(saved));
  Save(saved.model, path);
  for (float& value : Weight(loaded).span<float>()) value = 9;
  Load(loaded.model, path);
  EXPECT_EQ(nn::ValuesOf(Weight(loaded)), values);
  // A folder with such a file, as those of Hugging Face.
  for (float& value : Weight(loaded).span<float>()) value = 9;
  Load(loaded.model, path.substr(0, path.rfind('/')));
  EXPECT_EQ(nn::ValuesOf(Weight(loaded)), values);
  EXPECT_THAT(FilesOf(path), ElementsAre("model.safetensors"));
}

TEST_F(StateTest, ReadsFilesOfWrappedModelsAndOtherDtypes) {
  const std::string path = PathOf("ddp.safetensors");
  Trained trained(*kernels_);
  std::vector<nn::NamedTensor> tensors;
  const State named = std::move(State().Add(trained.model));
  for (const StateEntry& entry : named.entries()) {
    tensors.push_back(
        {absl::StrCat("module.", entry.names[0]),
         *nn::ConvertFloats(entry.tensor, nn::DType::kF64, memory_)});
  }
  const std::vector<double> values = nn::ValuesOf(Weight(trained));
  const std::string by_torch = PathOf("ddp.pt");
  ASSERT_TRUE(nn::WriteSafetensors(files_, path, tensors, {}).ok());
  ASSERT_TRUE(nn::WriteTorchFile(files_, by_torch, tensors).ok());
  for (const std::string& file : {path, by_torch}) {
    for (float& value : Weight(trained).span<float>()) value = 9;
    Load(trained.model, file);
    EXPECT_EQ(nn::ValuesOf(Weight(trained)), values) << file;
  }
}

TEST_F(StateTest, TwoModelsHaveTheirNames) {
  const std::string path = PathOf("gan.safetensors");
  Trained one(*kernels_), two(*kernels_);
  Weight(one).span<float>()[0] = 1;
  Weight(two).span<float>()[0] = 2;
  // The second name is also that of a wrapper.
  Save(State().Add("critic", one.model).Add("model", two.model), path);
  const auto file = nn::SafetensorsFile::Open(files_, path);
  ASSERT_TRUE(file.ok());
  EXPECT_NE(file->Find("critic.0.weight"), nullptr);
  EXPECT_NE(file->Find("model.1.running_mean"), nullptr);
  Weight(one).span<float>()[0] = Weight(two).span<float>()[0] = 0;
  Load(State().Add("model", two.model).Add("critic", one.model), path);
  EXPECT_EQ(Weight(one).span<float>()[0], 1);
  EXPECT_EQ(Weight(two).span<float>()[0], 2);
  EXPECT_EQ(ErrorOf([&] {
              State().Add("critic", one.model).Add("critic", two.model);
            }),
            "INVALID_ARGUMENT: a State has two entries called "
            "critic.0.weight; add one of them under another name");
}

TEST_F(StateTest, ListsWhatDiffersAndChangesNothing) {
  const std::string path = PathOf("model.safetensors");
  Trained small(*kernels_), large(*kernels_, /*inputs=*/5);
  Save(State().Add(small.model).Add("epoch", 1), path);
  std::int64_t step = 5;
  const std::vector<double> before = nn::ValuesOf(Weight(large));
  State state;
  state.Add(large.model).Add("step", step).Add("optimizer", large);
  EXPECT_EQ(
      ErrorOf([&] { Load(state, path); }),
      absl::StrCat(
          "INVALID_ARGUMENT: ", path,
          " has another state than the one to load; missing: step, "
          "optimizer.0.weight.momentum_buffer, "
          "optimizer.0.bias.momentum_buffer, "
          "optimizer.1.weight.momentum_buffer, "
          "optimizer.1.bias.momentum_buffer; unexpected: epoch; mismatched: "
          "0.weight is f32[2, 3], not f32[2, 5]; add to the State what was "
          "saved, or unset StateOptions::strict"));
  EXPECT_EQ(step, 5);
  EXPECT_EQ(nn::ValuesOf(Weight(large)), before);
  EXPECT_EQ(large.loaded, 0);

  // Not strict: what the file has, unless its shape is another.
  StateOptions loose;
  loose.strict = false;
  EXPECT_THAT(ErrorOf([&] { Load(state, path, loose); }),
              HasSubstr("mismatched: 0.weight is f32[2, 3], not f32[2, 5]"));
  Trained other(*kernels_);
  Weight(other).span<float>()[0] = 9;
  const nn::WeightDifferences left =
      Load(State().Add(other.model).Add("step", step), path, loose);
  EXPECT_THAT(left.missing, ElementsAre("step"));
  EXPECT_THAT(left.unexpected, ElementsAre("epoch"));
  EXPECT_EQ(nn::ValuesOf(Weight(other)), nn::ValuesOf(Weight(small)));
  EXPECT_EQ(step, 5);
}

TEST_F(StateTest, NumbersKeepTheirValuesAndTypes) {
  const std::string path = PathOf("numbers.safetensors");
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const std::uint64_t large = std::numeric_limits<std::int64_t>::max();
  Save(State()
           .Add("i64", least)
           .Add("u64", large)
           .Add("i32", -7)
           .Add("bool", true)
           .Add("f32", 0.1f)
           .Add("f64", 0.1),
       path);
  std::int64_t i64 = 0;
  std::uint64_t u64 = 0;
  std::int32_t i32 = 0;
  bool truth = false;
  float f32 = 0;
  double f64 = 0;
  Load(State()
           .Add("i64", i64)
           .Add("u64", u64)
           .Add("i32", i32)
           .Add("bool", truth)
           .Add("f32", f32)
           .Add("f64", f64),
       path);
  EXPECT_EQ(i64, least);
  EXPECT_EQ(u64, large);
  EXPECT_EQ(i32, -7);
  EXPECT_TRUE(truth);
  EXPECT_EQ(f32, 0.1f);
  EXPECT_EQ(f64, 0.1);

  EXPECT_EQ(
      ErrorOf([&] { Save(State().Add("seed", ~std::uint64_t{0}), path); }),
      "INVALID_ARGUMENT: seed: 18446744073709551615 is more than the "
      "largest i64 of a file; save it as two numbers");
  Save(State().Add("x", least), path);
  EXPECT_EQ(ErrorOf([&] { Load(State().Add("x", i32), path); }),
            "INVALID_ARGUMENT: x: -9223372036854775808 of the file does not "
            "fit into the variable; use a std::int64_t");
  EXPECT_THAT(ErrorOf([&] { Load(State().Add("x", u64), path); }),
              HasSubstr("does not fit"));
  EXPECT_EQ(i32, -7);
  EXPECT_THAT(ErrorOf([&] { Load(State().Add("x", f64), path); }),
              HasSubstr("mismatched: x is i64[], not f64[]"));
  EXPECT_EQ(ErrorOf([&] { Load(State().Add("x", 3), path); }),
            "INVALID_ARGUMENT: x was added as a constant; add a variable for "
            "Load() to set");
  const int constant = 3;
  EXPECT_THAT(ErrorOf([&] { Load(State().Add("x", constant), path); }),
              HasSubstr("x was added as a constant"));
}

TEST_F(StateTest, CopiesFromAndToADevice) {
  const std::string path = PathOf("device.safetensors");
  Trained host(*kernels_);
  Save(State().Add(host.model).Add("optimizer", host), path);
  const auto memory = std::make_shared<nn::GuardedMemory>(1 << 20);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const auto queued =
        nn::CreateQueuedKernels(nn::CreateReferenceKernels(), memory, seed);
    Trained device(*queued);
    StateOptions options;
    options.kernels = queued.get();
    ASSERT_TRUE(queued->Fill(9, Weight(device)).ok());
    const State state =
        std::move(State().Add(device.model).Add("optimizer", device));
    Load(state, path, options);
    const std::string again = PathOf("again.safetensors");
    Save(state, again, options);
    EXPECT_EQ(BytesOf(again), BytesOf(path));
    const std::string error =
        "INVALID_ARGUMENT: 0.weight is in memory of queued:0, which the host "
        "may not access; set StateOptions::kernels";
    EXPECT_EQ(ErrorOf([&] { Save(state, again); }), error);
    EXPECT_EQ(ErrorOf([&] { Load(state, again); }), error);
  }
}

TEST_F(StateTest, AModelWithoutMemoryIsAnError) {
  nn::Sequential model;
  model.Append<nn::Linear>(3, 2);
  EXPECT_THAT(ErrorOf([&] { Save(model, PathOf("x.safetensors")); }),
              StartsWith("INVALID_ARGUMENT: 0.weight has no memory; give the "
                         "model memory"));
}

// Every change of the disk fails once, and is the last one before a crash once.
TEST_F(StateTest, AFullDiskOrACrashLeavesTheOldFileOrTheNewOne) {
  Trained old_one(*kernels_), new_one(*kernels_);
  Weight(old_one).span<float>()[0] = 1;
  Weight(new_one).span<float>()[0] = 2;
  const std::string old_path = PathOf("old"), new_path = PathOf("new");
  Save(old_one.model, old_path);
  Save(new_one.model, new_path);
  const std::string old_bytes = BytesOf(old_path),
                    new_bytes = BytesOf(new_path);
  for (const bool crashes : {false, true}) {
    bool old_stayed = false, new_came = false, complete = false;
    for (int change = 0; !complete; ++change) {
      ASSERT_LT(change, 100);
      const std::string path =
          PathOf(absl::StrCat(crashes ? "crash" : "full", change));
      Save(old_one.model, path);
      base::FaultyFileSystem faulty;
      crashes ? faulty.CrashAt(change) : faulty.FailAt(change, ENOSPC);
      StateOptions options;
      options.files = &faulty;
      const std::string error =
          ErrorOf([&] { Save(new_one.model, path, options); });
      complete = !faulty.failed();
      EXPECT_EQ(error == "OK", complete) << error;
      if (!complete) {
        EXPECT_THAT(error, HasSubstr(path));
      }
      const std::string bytes = BytesOf(path);
      EXPECT_TRUE(bytes == old_bytes || bytes == new_bytes);
      (bytes == old_bytes ? old_stayed : new_came) = true;
      // The next Save() needs no cleaning.
      Save(new_one.model, path);
      EXPECT_EQ(BytesOf(path), new_bytes);
      EXPECT_FALSE(files_.Exists(path + ".saving"));
    }
    EXPECT_TRUE(old_stayed && new_came);
  }
}

TEST_F(StateTest, OneSavesAtATime) {
  const std::string path = PathOf("model");
  Trained trained(*kernels_);
  const absl::Status status =
      ReplaceFile(files_, path, [&](const std::string& temporary) {
        EXPECT_EQ(temporary, path + ".saving");
        const std::string error = ErrorOf([&] { Save(trained.model, path); });
        EXPECT_THAT(error, StartsWith(absl::StrCat(
                               "UNAVAILABLE: ", path,
                               " is being saved elsewhere: cannot lock ")));
        EXPECT_THAT(error, HasSubstr("; let one rank save, or give each rank "
                                     "a path"));
        return base::WriteWholeFile(files_, temporary, "the first");
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(BytesOf(path), "the first");
}

TEST_F(StateTest, AFolderIsNotReplaced) {
  Trained trained(*kernels_);
  const std::string folder = PathOf("checkpoints");
  ASSERT_TRUE(files_.CreateFolder(folder).ok());
  ASSERT_TRUE(base::WriteWholeFile(files_, folder + "/kept", "kept").ok());
  for (const std::string& path : {folder, folder + "/"}) {
    EXPECT_EQ(ErrorOf([&] { Save(trained.model, path); }),
              absl::StrCat("INVALID_ARGUMENT: cannot save to \"", path,
                           "\", which is a folder; name a file in it, such as "
                           "model.safetensors"));
  }
  EXPECT_EQ(BytesOf(folder + "/kept"), "kept");
  EXPECT_THAT(ErrorOf([&] { Save(trained.model, ""); }),
              HasSubstr("cannot save to \"\""));
  EXPECT_THAT(ErrorOf([&] { Save(trained.model, PathOf("no/such/x")); }),
              HasSubstr("No such file or directory"));
  EXPECT_THAT(ErrorOf([&] { Load(trained.model, PathOf("none")); }),
              StartsWith("NOT_FOUND: "));
}

}  // namespace
}  // namespace troupe
