#include "nn/serialize/torch/torch_file.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/serialize/torch/pickle.h"
#include "nn/serialize/weight_file.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

// Files that torch_files/make_files.py has made.
std::string PathOf(const std::string& name) {
  return absl::StrCat("tests/nn/serialize/torch_files/", name);
}

class TorchFileTest : public ::testing::Test {
 protected:
  // Returns "name dtype[shape] values" of each tensor.
  std::vector<std::string> Contents(const std::string& name) {
    const auto file = OpenTorchFile(files_, PathOf(name));
    if (!file.ok()) return {std::string(file.status().message())};
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < (*file)->tensors().size(); ++i) {
      const StoredTensor& t = (*file)->tensors()[i];
      if (!t.unreadable.empty()) {
        lines.push_back(absl::StrCat(t.name, " ", t.unreadable));
        continue;
      }
      const Tensor into = Tensor::Empty(t.shape, t.dtype, memory_);
      EXPECT_EQ((*file)->Read(i, into), absl::OkStatus());
      lines.push_back(absl::StrCat(t.name, " ", DTypeName(t.dtype),
                                   t.shape.ToString(), " ",
                                   absl::StrJoin(ValuesOf(into), " ")));
    }
    return lines;
  }
  absl::Status StatusOf(const std::string& name) {
    return WeightFile::Open(files_, PathOf(name)).status();
  }

  base::PosixFileSystem files_;
  CachingAllocator memory_;
};

TEST_F(TorchFileTest, ReadsAllFormatsAndCheckpoints) {
  Sequential model;
  model.Append<Linear>(3, 2);
  for (const char* name : {"plain.pt", "legacy.pth", "deflated.pt",
                           "protocol4.pt", "parameters.pt", "lightning.ckpt",
                           "nanogpt.pt", "timm.pth.tar", "tutorial.pt"}) {
    SCOPED_TRACE(name);
    const auto weights = WeightFile::Open(files_, PathOf(name));
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(weights->CheckStrict(model), absl::OkStatus());
    const Tensor weight = Tensor::Zeros({2, 3}, DType::kF32, memory_);
    EXPECT_EQ(*weights->Read(*model.Parameters()[0], weight), true);
    EXPECT_EQ(ValuesOf(weight), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  }
}

TEST_F(TorchFileTest, ReadsViews) {
  for (const char* name : {"views.pt", "views_legacy.pt"}) {
    EXPECT_EQ(
        absl::StrJoin(Contents(name), "\n"),
        "transposed f32[6, 4] 0 6 12 18 1 7 13 19 2 8 14 20 3 9 15 21 4 10 16 "
        "22 5 11 17 23\n"
        "part f32[2, 3] 8 9 10 14 15 16\n"
        "expanded f32[3, 2] 0 0 1 1 2 2\n"
        "empty f32[0, 6] \n"
        "channels_last f32[1, 3, 2, 2] 0 3 6 9 1 4 7 10 2 5 8 11\n"
        "scalar f32[] 23");
  }
}

TEST_F(TorchFileTest, ReadsOurDTypesAndListsTheOthers) {
  EXPECT_EQ(absl::StrJoin(Contents("dtypes.pt"), "\n"),
            "float32 f32[3] 0 1 2\n"
            "float64 f64[3] 0 1 2\n"
            "bfloat16 bf16[3] 0 1 2\n"
            "float16 f16[3] 0 1 2\n"
            "int32 i32[3] 0 1 2\n"
            "int64 i64[3] 0 1 2\n"
            "uint8 u8[3] 0 1 2\n"
            "bool bool[3]\n"
            "int8 char[3]\n"
            "int16 short[3]\n"
            "complex64 complexfloat[3]\n"
            "uint16 uint16[3]\n"
            "float8_e4m3fn float8_e4m3fn[3]");
}

// Whatever the file would run in Python is named, by every code and protocol of
// pickle that calls.
TEST_F(TorchFileTest, RefusesCallsByTheirNames) {
  for (const auto& [name, call] : {
           std::pair("system0.pt", "posix.system"),
           std::pair("system1.pt", "posix.system"),
           std::pair("system2.pt", "posix.system"),
           std::pair("system3.pt", "posix.system"),
           std::pair("system4.pt", "posix.system"),
           std::pair("system5.pt", "posix.system"),
           std::pair("eval.pt", "__builtin__.eval"),
           std::pair("instance.pt", "os.system"),
           std::pair("object.pt", "os.system"),
           std::pair("system.pth", "os.system"),
           std::pair("module.pt", "torch.nn.modules.linear.Linear"),
       }) {
    const absl::Status status = StatusOf(name);
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << name;
    EXPECT_EQ(status.message(),
              absl::StrCat(PathOf(name), " has a pickled call of \"", call,
                           "\", which Troupe neither runs nor knows to be "
                           "harmless; save the state dict alone, torch.save("
                           "model.state_dict(), path), or as safetensors"));
  }
}

TEST_F(TorchFileTest, SaysWhatIsMissing) {
  EXPECT_EQ(StatusOf("no_weights.pt").message(),
            absl::StrCat(PathOf("no_weights.pt"),
                         " has no state dict, neither itself nor under "
                         "state_dict, model_state_dict, model, module; its "
                         "keys: epoch, weights; save the state dict: "
                         "torch.save(model.state_dict(), path)"));
}

// A model file of llm.c: one layer of width 1, two tokens and one row of
// padding, one position.
TEST_F(TorchFileTest, ReadsModelFilesOfLlmC) {
  std::vector<std::int32_t> header(256, 0);
  header[0] = 20240326;
  header[1] = 3;
  header[2] = header[4] = header[5] = header[6] = 1;
  header[3] = 2;
  header[7] = 3;
  std::vector<float> values(3 + 1 + 25 + 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i;
  const auto write = [&] {
    std::string bytes(reinterpret_cast<const char*>(header.data()), 1024);
    bytes.append(reinterpret_cast<const char*>(values.data()),
                 values.size() * sizeof(float));
    const std::string path = absl::StrCat(::testing::TempDir(), "/llmc.bin");
    EXPECT_TRUE(base::WriteWholeFile(files_, path, bytes).ok());
    return WeightFile::Open(files_, path);
  };
  const auto weights = write();
  ASSERT_TRUE(weights.ok()) << weights.status();
  const auto read = [&](absl::string_view name, const Shape& shape) {
    const Tensor into = Tensor::Zeros(shape, DType::kF32, memory_);
    EXPECT_TRUE(*weights->Read({{name}, {shape, DType::kF32}}, into)) << name;
    return ValuesOf(into);
  };
  EXPECT_EQ(read("wte.weight", {2, 1}), (std::vector<double>{0, 1}));
  EXPECT_EQ(read("wpe.weight", {1, 1}), (std::vector<double>{3}));
  EXPECT_EQ(read("h.0.ln_1.bias", {1}), (std::vector<double>{5}));
  EXPECT_EQ(read("h.0.attn.c_attn.weight", {3, 1}),
            (std::vector<double>{6, 7, 8}));
  EXPECT_EQ(read("ln_f.bias", {1}), (std::vector<double>{values.back()}));
  values.pop_back();
  EXPECT_EQ(write().status().code(), absl::StatusCode::kDataLoss);
  header[1] = 2;
  EXPECT_EQ(write().status().code(), absl::StatusCode::kUnimplemented);
}

// --- pickles

std::string ErrorOf(const std::string& pickle) {
  const auto tree = ParsePickle(pickle);
  return tree.ok() ? "" : std::string(tree.status().message());
}

TEST(PickleTest, HasLimits) {
  EXPECT_EQ(ErrorOf(std::string(kPickleMarksMax + 1, '(')),
            "has a pickle of more than 1000 nested marks");
  EXPECT_EQ(ErrorOf(std::string(kPickleStackMax + 1, 'N')),
            "has a pickle of more than 1048576 values on its stack");
  std::string many;
  for (std::size_t i = 0; i <= kPickleValuesMax; ++i) many.append("N0");
  EXPECT_EQ(ErrorOf(many), "has a pickle of more than 4194304 values");
  EXPECT_EQ(ErrorOf(std::string("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f", 9)),
            "has a pickle of more than 268435456 bytes");
  EXPECT_EQ(ErrorOf(absl::StrCat("c", std::string(300, 'm'), "\nx\n.")),
            "has a pickle of more than 200 bytes in a name");
}

TEST(PickleTest, RefusesWhatIsDamaged) {
  EXPECT_EQ(ErrorOf(""), "ends in the middle of a pickle");
  EXPECT_EQ(ErrorOf("."), "is a damaged pickle: its stack is empty");
  EXPECT_EQ(ErrorOf("(1."), "is a damaged pickle: its stack is empty");
  EXPECT_EQ(ErrorOf("t."), "is a damaged pickle: a mark is missing");
  EXPECT_EQ(ErrorOf("(Nd."), "is a damaged pickle: a key has no value");
  EXPECT_EQ(ErrorOf("h\7."), "is a damaged pickle: its memo lacks a value");
  EXPECT_EQ(ErrorOf("\x80\x09."),
            "is a damaged pickle: there is no protocol 9");
  EXPECT_EQ(ErrorOf("NNa."),
            "is a damaged pickle: items are added to what is no container");
  EXPECT_EQ(ErrorOf("\x82\1."), "is a damaged pickle: it has no code 130");
  EXPECT_EQ(ErrorOf("N)R."), "has a pickled call of None, no name");
}

// A value that holds itself costs nothing.
TEST(PickleTest, KeepsCyclesAsNumbers) {
  const std::string cycle = "]q\1h\1a.";
  const auto tree = ParsePickle(cycle);
  ASSERT_TRUE(tree.ok()) << tree.status();
  EXPECT_EQ((*tree)[tree->root].items, std::vector<PickleId>{tree->root});
}

TEST(PickleTest, NamesAreOneLine) {
  EXPECT_EQ(PrintableName("a\nb\x1b"), "a\\nb\\x1b");
  EXPECT_EQ(PrintableName(std::string(101, 'x')),
            std::string(100, 'x') + "...");
}

}  // namespace
}  // namespace troupe::nn
