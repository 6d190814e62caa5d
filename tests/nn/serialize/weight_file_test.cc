#include "nn/serialize/weight_file.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/modules/embedding.h"
#include "nn/modules/linear.h"
#include "nn/modules/localise.h"
#include "nn/modules/sequential.h"
#include "nn/serialize/name_styles.h"
#include "nn/tensor/caching_allocator.h"
#include "tests/nn/testing/tensor_values.h"

namespace troupe::nn {
namespace {

// Makes a part of a GPT-2 of width 2: the names that matter.
std::unique_ptr<Sequential> MakePartOfGpt2(bool tied) {
  auto model = std::make_unique<Sequential>();
  auto& tokens = model->AppendNamed<Embedding>("wte", 3, 2);
  auto& attn = model->AppendNamed<Sequential>("h")
                   .Append<Sequential>()
                   .AppendNamed<Sequential>("attn");
  attn.AppendNamed<Linear>("c_attn", 2, 6);
  attn.AppendNamed<Linear>("c_proj", 2, 2);
  Linear::Options without_bias;
  without_bias.bias = false;
  auto& head = model->AppendNamed<Linear>("lm_head", 2, 3, without_bias);
  if (tied) head.TieParameter("weight", tokens, "weight");
  return model;
}

class WeightFileTest : public ::testing::Test {
 protected:
  Tensor Counting(const Shape& shape, DType dtype = DType::kF32) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.numel(); ++i) values.push_back(i);
    return MakeTensor(shape, dtype, values, memory_);
  }

  // Returns a file with these tensors.
  WeightFile FileWith(const std::vector<NamedTensor>& tensors) {
    const std::string path = absl::StrCat(
        ::testing::TempDir(), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name(),
        ".safetensors");
    EXPECT_TRUE(WriteSafetensors(files_, path, tensors, {}).ok());
    return WeightFile::Open(files_, path).value();
  }

  // Returns the values that parameter `i` of `model` reads.
  std::vector<double> ValuesIn(const WeightFile& weights, Module& model,
                               int i) {
    const Parameter& parameter = *model.Parameters()[i];
    const Tensor into =
        Tensor::Zeros(parameter.shape, parameter.dtype, memory_);
    const absl::StatusOr<bool> found = weights.Read(parameter, into);
    EXPECT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found.ok() && *found) << parameter.name;
    return ValuesOf(into);
  }

  // Returns tensors as GPT2LMHeadModel saves them.
  std::vector<NamedTensor> TransformersTensors() {
    return {{"transformer.wte.weight", Counting({3, 2})},
            {"transformer.h.0.attn.bias", Counting({1, 1, 4, 4})},
            {"transformer.h.0.attn.c_attn.weight", Counting({2, 6})},
            {"transformer.h.0.attn.c_attn.bias", Counting({6})},
            {"transformer.h.0.attn.c_proj.weight", Counting({2, 2})},
            {"transformer.h.0.attn.c_proj.bias", Counting({2})}};
  }

  base::PosixFileSystem files_;
  CachingAllocator memory_;
};

TEST_F(WeightFileTest, ReadsTransformersGpt2) {
  const WeightFile weights = FileWith(TransformersTensors());
  for (bool tied : {true, false}) {
    auto model = MakePartOfGpt2(tied);
    EXPECT_EQ(weights.CheckStrict(*model), absl::OkStatus());
    EXPECT_EQ(ValuesIn(weights, *model, 1),
              (std::vector<double>{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11}));
    // The weight is square, and transposed all the same.
    EXPECT_EQ(ValuesIn(weights, *model, 3), (std::vector<double>{0, 2, 1, 3}));
    if (tied) continue;
    EXPECT_EQ(ValuesIn(weights, *model, 5),
              (std::vector<double>{0, 1, 2, 3, 4, 5}));
  }
}

TEST_F(WeightFileTest, ReadsLinearGpt2AsItIs) {
  const WeightFile weights =
      FileWith({{"wte.weight", Counting({3, 2})},
                {"lm_head.weight", Counting({3, 2})},
                {"h.0.attn.c_attn.weight", Counting({6, 2})},
                {"h.0.attn.c_attn.bias", Counting({6})},
                {"h.0.attn.c_proj.weight", Counting({2, 2})},
                {"h.0.attn.c_proj.bias", Counting({2})}});
  auto model = MakePartOfGpt2(/*tied=*/true);
  EXPECT_EQ(weights.CheckStrict(*model), absl::OkStatus());
  EXPECT_EQ(ValuesIn(weights, *model, 3), (std::vector<double>{0, 1, 2, 3}));
}

TEST_F(WeightFileTest, WritesTransformersGpt2) {
  auto model = MakePartOfGpt2(/*tied=*/true);
  std::vector<NamedTensor> tensors;
  for (const Parameter* p : model->Parameters()) {
    tensors.push_back({p->name, Counting(p->shape)});
  }
  const auto renamed = AsTransformersGpt2(tensors, memory_);
  ASSERT_TRUE(renamed.ok()) << renamed.status();
  EXPECT_EQ((*renamed)[1].name, "transformer.h.0.attn.c_attn.weight");
  EXPECT_EQ((*renamed)[1].tensor.shape(), (Shape{2, 6}));
  const WeightFile weights = FileWith(*renamed);
  EXPECT_EQ(weights.CheckStrict(*model), absl::OkStatus());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(ValuesIn(weights, *model, static_cast<int>(i)),
              ValuesOf(tensors[i].tensor));
  }
  EXPECT_EQ(AsTransformersGpt2({}, memory_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(WeightFileTest, AWrapperMayBeAModulesName) {
  // Two models, of which the second is called as a wrapper.
  const TensorSpec spec = {{2}, DType::kF32};
  const std::vector<WantedWeight> wanted = {{{"bias"}, spec},
                                            {{"model.bias"}, spec}};
  const WeightFile both =
      FileWith({{"bias", Counting({2})}, {"model.bias", Counting({2})}});
  EXPECT_EQ(both.Compare(wanted).ToString(), "");
  const WeightFile one = FileWith({{"model.bias", Counting({2})}});
  EXPECT_EQ(one.Compare(wanted).ToString(), "missing: bias");
  EXPECT_EQ(one.Compare(absl::MakeConstSpan(wanted).first(1)).ToString(), "");
  const Tensor into = Tensor::Empty({2}, DType::kF32, memory_);
  EXPECT_EQ(*one.Read(wanted[1], into), true);
  EXPECT_EQ(ValuesOf(into), (std::vector<double>{0, 1}));
}

TEST_F(WeightFileTest, ConvertsFloats) {
  Sequential model;
  model.Append<Linear>(2, 2);
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF64}) {
    const WeightFile weights =
        FileWith({{"module.0.weight", Counting({2, 2}, dtype)},
                  {"module.0.bias", Counting({2}, dtype)}});
    EXPECT_EQ(weights.CheckStrict(model), absl::OkStatus());
    EXPECT_EQ(ValuesIn(weights, model, 0), (std::vector<double>{0, 1, 2, 3}));
  }
  const auto half = ConvertFloats(Counting({3}), DType::kF16, memory_);
  EXPECT_EQ(half->dtype(), DType::kF16);
  EXPECT_EQ(ValuesOf(*half), (std::vector<double>{0, 1, 2}));
  const Tensor counter = Counting({1}, DType::kI64);
  EXPECT_EQ(ConvertFloats(counter, DType::kF16, memory_)->dtype(), DType::kI64);
}

TEST_F(WeightFileTest, ReadsAPieceOfTheWhole) {
  Sequential model;
  model.Append<Linear>(2, 4).set_parallel(Linear::kColumn, {2, 2});
  ASSERT_TRUE(LocaliseModel(model, {{"tp", 1, 2}}).ok());
  const WeightFile weights =
      FileWith({{"0.weight", Counting({4, 2})}, {"0.bias", Counting({4})}});
  EXPECT_EQ(weights.CheckStrict(model), absl::OkStatus());
  EXPECT_EQ(ValuesIn(weights, model, 0), (std::vector<double>{2, 3, 6, 7}));
}

// Wrappers stand before names in any number and order, and need not be the same
// before all names.
TEST_F(WeightFileTest, RemovesWrappersInAnyOrder) {
  for (const auto& [body, head] :
       {std::pair("_orig_mod.transformer.", "_orig_mod."),
        std::pair("model.transformer.", "model."),
        std::pair("module._orig_mod.", "module._orig_mod."),
        std::pair("_orig_mod.module.model.transformer.", ""),
        std::pair("transformer.", "_fsdp_wrapped_module._orig_mod."),
        std::pair("", "_forward_module.module."),
        std::pair("net._orig_mod.transformer.", "net._orig_mod."),
        std::pair("base_model.model.transformer.", "base_model.model.")}) {
    std::vector<NamedTensor> tensors = {
        {absl::StrCat(head, "lm_head.weight"), Counting({3, 2})}};
    for (const auto& [name, shape] :
         {std::pair("wte.weight", Shape{3, 2}),
          std::pair("h.0.attn.c_attn.weight", Shape{6, 2}),
          std::pair("h.0.attn.c_attn.bias", Shape{6}),
          std::pair("h.0.attn.c_proj.weight", Shape{2, 2}),
          std::pair("h.0.attn.c_proj.bias", Shape{2})}) {
      tensors.push_back({absl::StrCat(body, name), Counting(shape)});
    }
    const WeightFile weights = FileWith(tensors);
    for (bool tied : {true, false}) {
      auto model = MakePartOfGpt2(tied);
      EXPECT_EQ(weights.CheckStrict(*model), absl::OkStatus()) << body;
      EXPECT_EQ(ValuesIn(weights, *model, 3),
                (std::vector<double>{0, 1, 2, 3}));
    }
    tensors.push_back({absl::StrCat(body, "value_head.weight"), Counting({1})});
    auto model = MakePartOfGpt2(/*tied=*/true);
    EXPECT_EQ(FileWith(tensors).Compare(*model).ToString(),
              absl::StrCat("unexpected: ", body, "value_head.weight"));
  }
}

TEST_F(WeightFileTest, TellsNamesOfTheModelFromWrappers) {
  // The model's own names begin as a wrapper's do.
  Sequential model;
  Linear::Options without_bias;
  without_bias.bias = false;
  model.AppendNamed<Linear>("fc", 1, 1, without_bias);
  model.AppendNamed<Sequential>("model").AppendNamed<Linear>("fc", 1, 1,
                                                             without_bias);
  const auto value = [&](double x) {
    return MakeTensor({1, 1}, DType::kF32, {x}, memory_);
  };
  for (const char* wrapper : {"", "module.", "model.module."}) {
    const WeightFile weights =
        FileWith({{absl::StrCat(wrapper, "fc.weight"), value(1)},
                  {absl::StrCat(wrapper, "model.fc.weight"), value(2)}});
    EXPECT_EQ(weights.CheckStrict(model), absl::OkStatus()) << wrapper;
    EXPECT_EQ(ValuesIn(weights, model, 0), std::vector<double>{1});
    EXPECT_EQ(ValuesIn(weights, model, 1), std::vector<double>{2});
  }
  // Two tensors would be the same parameter.
  Sequential small;
  small.AppendNamed<Linear>("fc", 1, 1, without_bias);
  EXPECT_EQ(FileWith({{"module.model.fc.weight", value(1)},
                      {"module.fc.weight", value(2)}})
                .Compare(small)
                .ToString(),
            "unexpected: module.model.fc.weight");
}

// Weights in several files, with an index.
class ShardedWeightsTest : public WeightFileTest {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(
        ::testing::TempDir(), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    ASSERT_TRUE(files_.RemoveAll(folder_).ok());
    ASSERT_TRUE(files_.CreateFolder(folder_).ok());
    model_.Append<Linear>(2, 2);
  }
  std::string In(const std::string& name) {
    return absl::StrCat(folder_, "/", name);
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::WriteWholeFile(files_, In(name), text).ok());
  }
  void WriteTensors(const std::string& name, const NamedTensor& tensor) {
    ASSERT_TRUE(WriteSafetensors(files_, In(name), {tensor}, {}).ok());
  }
  // Writes both files and an index of this name.
  void WriteShards(const std::string& index) {
    WriteTensors("a.safetensors", {"model.0.weight", Counting({2, 2})});
    WriteTensors("b.safetensors", {"model.0.bias", Counting({2})});
    Write(index, R"({"metadata": {"total_size": 24}, "weight_map": {)"
                 R"("model.0.weight": "a.safetensors",)"
                 R"("model.0.bias": "b.safetensors"}})");
  }
  std::string ErrorOf(const std::string& path) {
    return std::string(WeightFile::Open(files_, path).status().message());
  }

  std::string folder_;
  Sequential model_;
};

TEST_F(ShardedWeightsTest, AreReadByTheirIndex) {
  const std::string other = "diffusion_pytorch_model.safetensors.index.json";
  WriteShards("model.safetensors.index.json");
  WriteShards(other);
  for (const std::string& path :
       {folder_, In("model.safetensors.index.json"), In(other)}) {
    const auto weights = WeightFile::Open(files_, path);
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(weights->CheckStrict(model_), absl::OkStatus());
    EXPECT_EQ(ValuesIn(*weights, model_, 0), (std::vector<double>{0, 1, 2, 3}));
    EXPECT_EQ(ValuesIn(*weights, model_, 1), (std::vector<double>{0, 1}));
  }
}

TEST_F(ShardedWeightsTest, SayWhatIsWrong) {
  EXPECT_EQ(ErrorOf(folder_),
            absl::StrCat(folder_,
                         " has no model.safetensors, no "
                         "model.safetensors.index.json, no pytorch_model.bin, "
                         "no pytorch_model.bin.index.json; name the file "
                         "itself, or another folder"));
  const std::string index = In("model.safetensors.index.json");
  WriteShards("model.safetensors.index.json");
  WriteTensors("b.safetensors", {"0.weight", Counting({2})});
  EXPECT_EQ(ErrorOf(folder_),
            absl::StrCat(index,
                         " cannot be used: b.safetensors has no tensor "
                         "\"model.0.bias\"; restore it from a copy"));
  ASSERT_TRUE(files_.RemoveAll(In("b.safetensors")).ok());
  EXPECT_EQ(ErrorOf(folder_),
            absl::StrCat("cannot read ", In("b.safetensors"),
                         ": No such file or directory; check the path"));
  for (const auto& [text, why] :
       {std::pair("{", "it is not valid JSON"),
        std::pair("[]", "it is not a JSON object"),
        std::pair(R"({"weight_map": {"0.bias": 1}})",
                  "field \"weight_map\" is missing or not an object of texts"),
        std::pair(
            R"({"weight_map": {"0.bias": "../b.safetensors"}})",
            "\"../b.safetensors\" is not the name of a file beside it")}) {
    Write("model.safetensors.index.json", text);
    EXPECT_EQ(ErrorOf(folder_), absl::StrCat(index, " cannot be used: ", why,
                                             "; restore it from a copy"));
  }
  Write("model.safetensors.index.json",
        "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_EQ(ErrorOf(folder_),
            absl::StrCat(index,
                         " is a pointer of git-lfs; "
                         "fetch the file itself (git lfs pull)"));
}

// A mask or a scale of a dtype that no tensor has is listed, and does not keep
// the other tensors from being read.
TEST_F(WeightFileTest, PassesOverTensorsThatItCannotRead) {
  std::string header =
      R"({"0.weight":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},)"
      R"("0.bias":{"dtype":"F8_E5M2","shape":[1],"data_offsets":[4,5]},)"
      R"("h.0.attn.bias":{"dtype":"BOOL","shape":[1],"data_offsets":[5,6]},)"
      R"("scales":{"dtype":"I8","shape":[1],"data_offsets":[6,7]}})";
  header.resize(256, ' ');
  const std::string path = absl::StrCat(::testing::TempDir(), "/others");
  ASSERT_TRUE(base::WriteWholeFile(files_, path,
                                   std::string("\0\1\0\0\0\0\0\0", 8) + header +
                                       std::string(7, '\0'))
                  .ok());
  const auto weights = WeightFile::Open(files_, path);
  ASSERT_TRUE(weights.ok()) << weights.status();
  Sequential model;
  model.Append<Linear>(1, 1);
  EXPECT_EQ(weights->Compare(model).ToString(),
            "unexpected: scales; mismatched: 0.bias is F8_E5M2[1], not f32[1]");
  EXPECT_TRUE(weights->Has(*model.Parameters()[0]));
  EXPECT_FALSE(weights->Has(*model.Parameters()[1]));
  EXPECT_EQ(ValuesIn(*weights, model, 0), std::vector<double>{0});
}

TEST_F(WeightFileTest, ListsHowItDiffers) {
  Sequential model;
  model.Append<Linear>(2, 2);
  model.Append<Linear>(2, 3);
  std::vector<NamedTensor> tensors = {{"0.weight", Counting({2, 3})},
                                      {"0.bias", Counting({2}, DType::kI64)}};
  for (int i = 0; i < 23; ++i) {
    tensors.push_back({absl::StrCat("x", i + 10), Counting({1})});
  }
  const WeightFile weights = FileWith(tensors);
  EXPECT_EQ(
      weights.CheckStrict(model),
      absl::InvalidArgumentError(absl::StrCat(
          weights.path(),
          " has the weights of another model; missing: 1.weight, 1.bias; "
          "unexpected: x10, x11, x12, x13, x14, x15, x16, x17, x18, x19, x20, "
          "x21, x22, x23, x24, x25, x26, x27, x28, x29 and 3 more; mismatched: "
          "0.weight is f32[2, 3], not f32[2, 2], 0.bias is i64[2], not "
          "f32[2]")));
  // A tensor that does not fit is not read.
  const Parameter& weight = *model.Parameters()[0];
  EXPECT_FALSE(weights.Has(weight));
  const Tensor into = Counting({2, 2});
  EXPECT_FALSE(*weights.Read(weight, into));
  EXPECT_EQ(ValuesOf(into), (std::vector<double>{0, 1, 2, 3}));
}

TEST_F(WeightFileTest, KnowsNamesOfOtherLibraries) {
  const auto name = [](absl::string_view theirs) {
    const auto ours = OurName(theirs);
    return ours.has_value()
               ? absl::StrCat(ours->name, " ", ours->part, "/", ours->parts)
               : "none";
  };
  EXPECT_EQ(name("embedder.embedder.normalization.running_var"),
            "bn1.running_var 0/1");
  EXPECT_EQ(name("encoder.stages.3.layers.11.layer.2.convolution.weight"),
            "layer4.11.conv3.weight 0/1");
  EXPECT_EQ(name("encoder.stages.0.layers.0.shortcut.normalization.bias"),
            "layer1.0.downsample.1.bias 0/1");
  EXPECT_EQ(name("encoder.layer.7.attention.attention.value.bias"),
            "blocks.7.attn.qkv.bias 2/3");
  EXPECT_EQ(name("layers.0.attention.k_proj.weight"),
            "blocks.0.attn.qkv.weight 1/3");
  EXPECT_EQ(
      name("encoder.layers.encoder_layer_2.self_attention.in_proj_weight"),
      "blocks.2.attn.qkv.weight 0/1");
  EXPECT_EQ(name("encoder.pos_embedding"), "pos_embed 0/1");
  EXPECT_EQ(name("encoder.pos_embedding.x"), "none");
  EXPECT_EQ(name("layers.x.mlp.fc1.weight"), "none");
  EXPECT_EQ(name("classifier.1.a.weight"), "none");
}

// Three tensors of a file that are one in the model.
TEST_F(WeightFileTest, JoinsQueriesKeysAndValues) {
  const auto value = [&](double x) {
    return MakeTensor({1, 2}, DType::kF32, {x, x + 1}, memory_);
  };
  std::vector<NamedTensor> tensors = {
      {"vit.layers.0.attention.v_proj.weight", value(5)},
      {"vit.layers.0.attention.q_proj.weight", value(1)},
      {"vit.layers.0.attention.k_proj.weight", value(3)}};
  const WantedWeight wanted = {{"blocks.0.attn.qkv.weight"},
                               {{3, 2}, DType::kF32}};
  const Tensor into = Tensor::Zeros({3, 2}, DType::kF32, memory_);
  const WeightFile whole = FileWith(tensors);
  EXPECT_EQ(whole.Compare({wanted}).ToString(), "");
  EXPECT_EQ(*whole.Read(wanted, into), true);
  EXPECT_EQ(ValuesOf(into), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  tensors.pop_back();
  EXPECT_EQ(FileWith(tensors).Compare({wanted}).missing,
            std::vector<std::string>{"blocks.0.attn.qkv.weight"});
}

TEST_F(WeightFileTest, ShowsTheNearestName) {
  const WantedWeight wanted = {{"classifier.weight"}, {{2}, DType::kF32}};
  EXPECT_EQ(FileWith({{"module.clasifier.weight", Counting({2})}})
                .Compare({wanted})
                .ToString(),
            "missing: classifier.weight; unexpected: module.clasifier.weight; "
            "nearest names: classifier.weight may be module.clasifier.weight");
}

TEST_F(WeightFileTest, SaysThatAFileIsNone) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/no_weights");
  ASSERT_TRUE(base::WriteWholeFile(files_, path, "not a file").ok());
  EXPECT_EQ(WeightFile::Open(files_, path).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(WeightFile::Open(files_, absl::StrCat(path, "x")).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe::nn
