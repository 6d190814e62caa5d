#include "nn/serialize/torch/torch_file.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/modules/linear.h"
#include "nn/modules/sequential.h"
#include "nn/serialize/torch/pickle.h"
#include "nn/serialize/torch/torch_writer.h"
#include "nn/serialize/transformers_model.h"
#include "nn/serialize/weight_file.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/nn/serialize/llmc_bytes.h"
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

  Tensor Counting(const Shape& shape, DType dtype) {
    std::vector<double> values(shape.numel());
    std::iota(values.begin(), values.end(), 0);
    return MakeTensor(shape, dtype, values, memory_);
  }
  // Returns a tensor whose bytes count up: infinities and NaN are among them.
  Tensor AllBits(const Shape& shape, DType dtype) {
    Tensor tensor = Tensor::Empty(shape, dtype, memory_);
    auto* const bytes = static_cast<unsigned char*>(tensor.raw());
    for (std::size_t i = 0; i < tensor.bytes(); ++i) {
      bytes[i] = static_cast<unsigned char>(i % 251);
    }
    return tensor;
  }
  static void ExpectSameBits(const Tensor& a, const Tensor& b) {
    ASSERT_EQ(a.bytes(), b.bytes());
    EXPECT_TRUE(a.bytes() == 0 ||
                std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
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
  const auto open = [&](const std::string& bytes) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/llmc.bin");
    EXPECT_TRUE(base::WriteWholeFile(files_, path, bytes).ok());
    return WeightFile::Open(files_, path);
  };
  LlmcHeader header;
  const std::string good = LlmcBytes(header);
  const auto weights = open(good);
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
  EXPECT_EQ(read("ln_f.bias", {1}), (std::vector<double>{30}));
  EXPECT_EQ(open(good.substr(0, good.size() - 4)).status().code(),
            absl::StatusCode::kDataLoss);
  header.version = 2;
  EXPECT_EQ(open(LlmcBytes(header)).status().code(),
            absl::StatusCode::kUnimplemented);
  // A file that would have more layers than bytes.
  header = LlmcHeader();
  std::string many = LlmcBytes(header);
  header.layers = 10000;
  std::memcpy(many.data(), &header, sizeof(header));
  EXPECT_EQ(open(many).status().message(),
            absl::StrCat(::testing::TempDir(),
                         "/llmc.bin is a damaged model file of llm.c: its "
                         "header does not fit its length; write it again with "
                         "llm.c's train_gpt2.py"));
}

// Sharded files of torch.save, as transformers wrote them.
TEST_F(TorchFileTest, ReadsShardsByTheirIndex) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/shards");
  ASSERT_TRUE(files_.RemoveAll(folder).ok());
  ASSERT_TRUE(files_.CreateFolder(folder).ok());
  const auto in = [&](absl::string_view name) {
    return absl::StrCat(folder, "/", name);
  };
  const std::string index = in("pytorch_model.bin.index.json");
  const auto write_index = [&](absl::string_view bias_in) {
    return base::WriteWholeFile(
        files_, index,
        absl::StrCat(R"({"metadata": {"total_size": 32}, "weight_map": {)",
                     R"("0.weight": "pytorch_model-00001-of-00002.bin",)",
                     R"("0.bias": ")", bias_in, R"("}})"));
  };
  ASSERT_TRUE(WriteTorchFile(files_, in("pytorch_model-00001-of-00002.bin"),
                             {{"0.weight", Counting({2, 3}, DType::kF32)}})
                  .ok());
  ASSERT_TRUE(WriteTorchFile(files_, in("pytorch_model-00002-of-00002.bin"),
                             {{"0.bias", Counting({2}, DType::kF32)}})
                  .ok());
  ASSERT_TRUE(write_index("pytorch_model-00002-of-00002.bin").ok());
  Sequential model;
  model.Append<Linear>(3, 2);
  for (const std::string& path : {folder, index}) {
    const auto weights = WeightFile::Open(files_, path);
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(weights->path(), index);
    EXPECT_EQ(weights->CheckStrict(model), absl::OkStatus());
    for (const Parameter* p : model.Parameters()) {
      const Tensor into = Tensor::Zeros(p->shape, DType::kF32, memory_);
      EXPECT_EQ(*weights->Read(*p, into), true);
      ExpectSameBits(into, Counting(p->shape, DType::kF32));
    }
  }
  ASSERT_TRUE(write_index("pytorch_model-00001-of-00002.bin").ok());
  EXPECT_EQ(WeightFile::Open(files_, folder).status().message(),
            absl::StrCat(index,
                         " cannot be used: pytorch_model-00001-of-00002.bin "
                         "has no tensor \"0.bias\"; restore it from a copy"));
}

// --- writing

TEST_F(TorchFileTest, ReadsWhatItWrites) {
  std::vector<NamedTensor> tensors;
  for (DType dtype : {DType::kF32, DType::kF64, DType::kBF16, DType::kF16,
                      DType::kI32, DType::kI64, DType::kU8}) {
    tensors.push_back(
        {absl::StrCat("h.0.", DTypeName(dtype)), AllBits({3, 5}, dtype)});
  }
  tensors.push_back({"scalar", AllBits({}, DType::kF32)});
  tensors.push_back({"empty", AllBits({0, 6}, DType::kF32)});
  tensors.push_back({"six", AllBits({1, 2, 1, 3, 1, 2}, DType::kF64)});
  tensors.push_back(
      {"a 'quoted' \"name\" \xc3\xa4\n", AllBits({300}, DType::kU8)});
  // Lengths of more than one byte in a pickle.
  tensors.push_back({std::string(300, 'n'), AllBits({70000}, DType::kF16)});
  const std::string path = absl::StrCat(::testing::TempDir(), "/written.pt");
  ASSERT_EQ(WriteTorchFile(files_, path, tensors), absl::OkStatus());
  const auto file = OpenTorchFile(files_, path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ((*file)->tensors().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const StoredTensor& t = (*file)->tensors()[i];
    SCOPED_TRACE(t.name);
    EXPECT_EQ(t.name, tensors[i].name);
    ASSERT_EQ(t.dtype, tensors[i].tensor.dtype());
    ASSERT_EQ(t.shape, tensors[i].tensor.shape());
    const Tensor into = Tensor::Empty(t.shape, t.dtype, memory_);
    ASSERT_EQ((*file)->Read(i, into), absl::OkStatus());
    ExpectSameBits(into, tensors[i].tensor);
  }
}

TEST_F(TorchFileTest, WritesEqualFilesOfEqualTensors) {
  const auto bytes_of = [&](const std::vector<NamedTensor>& tensors) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/equal.pt");
    EXPECT_TRUE(WriteTorchFile(files_, path, tensors).ok());
    return *base::ReadWholeFile(files_, path, 1 << 20);
  };
  const auto make = [&] {
    return std::vector<NamedTensor>{{"a", AllBits({7}, DType::kF32)},
                                    {"b", AllBits({2, 2}, DType::kF64)}};
  };
  const std::string bytes = bytes_of(make());
  EXPECT_EQ(bytes_of(make()), bytes);
  // torch.load(mmap=True) wants aligned data: those of "a" begin so.
  const Tensor a = make()[0].tensor;
  const std::string data(static_cast<const char*>(a.raw()), a.bytes());
  EXPECT_EQ(bytes.find(data) % 64, 0u);
}

// The smallest models that have all kinds of tensors, under the names here.
TEST_F(TorchFileTest, ReadsWhatItWritesForTransformers) {
  const auto with = [&](std::vector<std::pair<std::string, Shape>> named) {
    std::vector<NamedTensor> tensors;
    for (auto& [name, shape] : named) {
      tensors.push_back({name, AllBits(shape, DType::kF32)});
    }
    return tensors;
  };
  const std::vector<NamedTensor> gpt2 =
      with({{"wte.weight", {5, 2}},
            {"wpe.weight", {3, 2}},
            {"h.0.ln_1.weight", {2}},
            {"h.0.attn.c_attn.weight", {6, 2}},
            {"h.0.attn.c_attn.bias", {6}},
            {"h.0.attn.c_proj.weight", {2, 2}},
            {"h.0.mlp.c_fc.weight", {8, 2}},
            {"h.0.mlp.c_proj.weight", {2, 8}},
            {"ln_f.bias", {2}}});
  const std::vector<NamedTensor> vit =
      with({{"cls_token", {1, 1, 4}},
            {"pos_embed", {1, 10, 4}},
            {"patch_embed.proj.weight", {4, 3, 2, 2}},
            {"blocks.0.norm1.weight", {4}},
            {"blocks.0.attn.qkv.weight", {12, 4}},
            {"blocks.0.attn.qkv.bias", {12}},
            {"blocks.0.attn.proj.weight", {4, 4}},
            {"blocks.0.mlp.fc1.weight", {16, 4}},
            {"blocks.0.mlp.fc2.bias", {4}},
            {"norm.weight", {4}},
            {"head.weight", {3, 4}}});
  std::vector<std::pair<std::string, Shape>> of_resnet = {
      {"conv1.weight", {2, 3, 7, 7}}, {"bn1.running_var", {2}}};
  for (int i = 1; i <= 4; ++i) {
    const std::string block = absl::StrCat("layer", i, ".0.");
    of_resnet.push_back({block + "conv1.weight", {2, 2, 1, 1}});
    of_resnet.push_back({block + "bn2.running_mean", {2}});
    of_resnet.push_back({block + "conv3.weight", {8, 2, 1, 1}});
    of_resnet.push_back({block + "downsample.0.weight", {8, 2, 1, 1}});
    of_resnet.push_back({block + "downsample.1.bias", {8}});
  }
  of_resnet.push_back({"fc.weight", {3, 8}});
  const std::vector<NamedTensor> resnet = with(of_resnet);
  for (const auto& [tensors, heads, words] :
       {std::tuple(gpt2, 2, R"("n_positions": 3)"),
        std::tuple(vit, 2, R"("image_size": 6)"),
        std::tuple(resnet, 0, R"("layer_type": "bottleneck")")}) {
    SCOPED_TRACE(tensors.back().name);
    const auto model = AsTransformers(tensors, heads, memory_);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_TRUE(absl::StrContains(model->config, words)) << model->config;
    const std::string path = absl::StrCat(::testing::TempDir(), "/hf.bin");
    ASSERT_EQ(WriteTorchFile(files_, path, model->tensors), absl::OkStatus());
    const auto weights = WeightFile::Open(files_, path);
    ASSERT_TRUE(weights.ok()) << weights.status();
    std::vector<WantedWeight> wanted;
    for (const NamedTensor& t : tensors) {
      wanted.push_back({{t.name}, {t.tensor.shape(), DType::kF32}});
    }
    EXPECT_EQ(weights->Compare(wanted).ToString(), "");
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& t = tensors[i].tensor;
      const Tensor into = Tensor::Zeros(t.shape(), DType::kF32, memory_);
      EXPECT_EQ(*weights->Read(wanted[i], into), true) << tensors[i].name;
      ExpectSameBits(into, t);
    }
  }
  EXPECT_EQ(AsTransformers(gpt2, 3, memory_).status().message(),
            "a width of 2 is no multiple of 3 heads; give the model's number "
            "of heads");
  EXPECT_EQ(
      AsTransformers(with({{"0.weight", {1, 1}}}), 0, memory_).status().code(),
      absl::StatusCode::kInvalidArgument);
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
