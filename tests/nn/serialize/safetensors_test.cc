#include "nn/serialize/safetensors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/file_system.h"
#include "gtest/gtest.h"
#include "nn/serialize/tensor_parts.h"
#include "nn/tensor/tensor.h"

namespace troupe::nn {
namespace {

constexpr std::int64_t kBytesMax = 1 << 20;

// Returns the output of safetensors.numpy.save() of Python's safetensors 0.8.0
// for
// {"b": uint8 [1,2,3], "fc.weight": float32 [[1.5,-2],[0.25,inf]],
//  "n": int64 7, "e": float32 (0,4), "h": float16 [1,-0.5],
//  "a": int32 [3,-4], "d": float64 [0.1]}, metadata {"format": "pt"}.
std::string PythonFile() {
  std::string file("\xa8\x01\0\0\0\0\0\0", 8);
  file += R"({"__metadata__":{"format":"pt"},)"
          R"("n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
          R"("d":{"dtype":"F64","shape":[1],"data_offsets":[8,16]},)"
          R"("e":{"dtype":"F32","shape":[0,4],"data_offsets":[16,16]},)"
          R"("fc.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]},)"
          R"("a":{"dtype":"I32","shape":[2],"data_offsets":[32,40]},)"
          R"("h":{"dtype":"F16","shape":[2],"data_offsets":[40,44]},)"
          R"("b":{"dtype":"U8","shape":[3],"data_offsets":[44,47]}})";
  file += std::string(
      "\7\0\0\0\0\0\0\0"
      "\x9a\x99\x99\x99\x99\x99\xb9\x3f"
      "\0\0\xc0\x3f\0\0\0\xc0\0\0\x80\x3e\0\0\x80\x7f"
      "\3\0\0\0\xfc\xff\xff\xff"
      "\0\x3c\0\xb8"
      "\1\2\3",
      47);
  return file;
}

class SafetensorsTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) {
    return absl::StrCat(
        ::testing::TempDir(), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name(), ".",
        name);
  }
  std::string PathWith(const std::string& contents) {
    const std::string path = Path("given.safetensors");
    EXPECT_TRUE(base::WriteWholeFile(files_, path, contents).ok());
    return path;
  }
  // Returns the error for a file with this header and `data_bytes` bytes of
  // data, without the path in front.
  std::string ErrorFor(const std::string& header, int data_bytes) {
    std::string length(8, '\0');
    length[0] = static_cast<char>(header.size() & 0xff);
    length[1] = static_cast<char>(header.size() >> 8);
    const std::string path =
        PathWith(length + header + std::string(data_bytes, 'x'));
    const auto file = SafetensorsFile::Open(files_, path);
    if (file.ok()) return "ok";
    std::string message(file.status().message());
    const std::string prefix = path + " is not a whole safetensors file: ";
    const std::string suffix = "; restore it from a copy or use an earlier one";
    EXPECT_EQ(message.substr(0, prefix.size()), prefix);
    message = message.substr(prefix.size());
    EXPECT_EQ(message.substr(message.size() - suffix.size()), suffix);
    return message.substr(0, message.size() - suffix.size());
  }

  std::vector<NamedTensor> PythonTensors() {
    const float inf = std::numeric_limits<float>::infinity();
    Tensor h = Tensor::Empty({2}, DType::kF16, allocator_);
    h.data<f16>()[0] = f16::FromFloat(1.0f);
    h.data<f16>()[1] = f16::FromFloat(-0.5f);
    return {
        {"b", Tensor::Of<std::uint8_t>({3}, {1, 2, 3}, allocator_)},
        {"fc.weight",
         Tensor::Of<float>({2, 2}, {1.5f, -2.0f, 0.25f, inf}, allocator_)},
        {"n", Tensor::Of<std::int64_t>({}, {7}, allocator_)},
        {"e", Tensor::Of<float>({0, 4}, {}, allocator_)},
        {"h", h},
        {"a", Tensor::Of<std::int32_t>({2}, {3, -4}, allocator_)},
        {"d", Tensor::Of<double>({1}, {0.1}, allocator_)},
    };
  }

  base::PosixFileSystem files_;
  CachingAllocator allocator_;
};

TEST_F(SafetensorsTest, WritesWhatPythonWrites) {
  const std::string path = Path("out.safetensors");
  ASSERT_TRUE(
      WriteSafetensors(files_, path, PythonTensors(), {{"format", "pt"}}).ok());
  EXPECT_EQ(*base::ReadWholeFile(files_, path, kBytesMax), PythonFile());
}

TEST_F(SafetensorsTest, ReadsWhatPythonWrites) {
  const auto file = SafetensorsFile::Open(files_, PathWith(PythonFile()));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata(), (SafetensorsMetadata{{"format", "pt"}}));
  std::vector<std::string> listed;
  for (const SafetensorsEntry& e : file->entries()) {
    listed.push_back(absl::StrCat(e.name, " ", DTypeName(e.dtype),
                                  e.shape.ToString(), " ", e.begin, "..",
                                  e.end));
  }
  EXPECT_EQ(listed, (std::vector<std::string>{
                        "n i64[] 0..8", "d f64[1] 8..16", "e f32[0, 4] 16..16",
                        "fc.weight f32[2, 2] 16..32", "a i32[2] 32..40",
                        "h f16[2] 40..44", "b u8[3] 44..47"}));
  for (const NamedTensor& want : PythonTensors()) {
    const auto got = file->Read(want.name, allocator_);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(BitEqual(*got, want.tensor)) << want.name;
  }
}

TEST_F(SafetensorsTest, KeepsEveryBit) {
  Tensor x = Tensor::Empty({4}, DType::kF32, allocator_);
  x.data<float>()[0] = std::nanf("0x123");
  x.data<float>()[1] = -0.0f;
  x.data<float>()[2] = std::numeric_limits<float>::denorm_min();
  x.data<float>()[3] = -std::numeric_limits<float>::infinity();
  Tensor y = Tensor::Empty({3}, DType::kBF16, allocator_);
  for (int i = 0; i < 3; ++i) y.data<bf16>()[i].bits = 0x7fc1 + i;
  const std::string path = Path("bits.safetensors");
  ASSERT_TRUE(WriteSafetensors(files_, path, {{"x", x}, {"y", y}}, {}).ok());
  const auto file = SafetensorsFile::Open(files_, path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(BitEqual(*file->Read("x", allocator_), x));
  EXPECT_TRUE(BitEqual(*file->Read("y", allocator_), y));
}

TEST_F(SafetensorsTest, OrderGivenDoesNotMatter) {
  std::vector<NamedTensor> tensors = PythonTensors();
  const std::string a = Path("a"), b = Path("b");
  ASSERT_TRUE(WriteSafetensors(files_, a, tensors, {}).ok());
  std::reverse(tensors.begin(), tensors.end());
  ASSERT_TRUE(WriteSafetensors(files_, b, tensors, {}).ok());
  EXPECT_EQ(*base::ReadWholeFile(files_, a, kBytesMax),
            *base::ReadWholeFile(files_, b, kBytesMax));
}

TEST_F(SafetensorsTest, NoTensorsAtAll) {
  const std::string path = Path("empty.safetensors");
  ASSERT_TRUE(WriteSafetensors(files_, path, {}, {}).ok());
  const auto file = SafetensorsFile::Open(files_, path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->entries().empty());
}

TEST_F(SafetensorsTest, NamesAreEscaped) {
  const Tensor x = Tensor::Of<float>({1}, {1.0f}, allocator_);
  const std::string name = "a \"quoted\"\n\xc3\xa9 name";
  const std::string path = Path("names.safetensors");
  ASSERT_TRUE(WriteSafetensors(files_, path, {{name, x}}, {}).ok());
  const auto file = SafetensorsFile::Open(files_, path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_NE(file->Find(name), nullptr);
}

TEST_F(SafetensorsTest, WriterRefusesWhatItCannotName) {
  const Tensor x = Tensor::Of<float>({1}, {1.0f}, allocator_);
  auto error = [&](const std::vector<NamedTensor>& tensors) {
    return std::string(
        WriteSafetensors(files_, Path("x"), tensors, {}).message());
  };
  EXPECT_EQ(error({{"w", x}, {"w", x}}),
            "two tensors are called \"w\"; rename one");
  EXPECT_EQ(error({{"", x}}),
            "a tensor may not be called \"\" in a safetensors file; rename it");
  EXPECT_EQ(error({{"__metadata__", x}}),
            "a tensor may not be called \"__metadata__\" in a safetensors "
            "file; rename it");
  EXPECT_EQ(error({{"\xff", x}}), "the name \"\\xff\" is not UTF-8; rename it");
  EXPECT_EQ(error({{"w", Tensor::Meta({2}, DType::kF32, Device())}}),
            "tensor \"w\" has no memory; save one with values");
  EXPECT_FALSE(files_.Exists(Path("x")));
}

TEST_F(SafetensorsTest, ReadNamesWhatDiffers) {
  const std::string path = PathWith(PythonFile());
  const auto file = SafetensorsFile::Open(files_, path);
  ASSERT_TRUE(file.ok()) << file.status();
  const Tensor wide = Tensor::Empty({2, 3}, DType::kF32, allocator_);
  EXPECT_EQ(file->Read("fc.weight", wide).message(),
            path +
                ": tensor \"fc.weight\" is f32[2, 2], f32[2, 3] is wanted; "
                "use the model it was saved from");
  const Tensor f64 = Tensor::Empty({2, 2}, DType::kF64, allocator_);
  EXPECT_EQ(file->Read("fc.weight", f64).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(file->Read("missing", wide),
            absl::NotFoundError(
                path + " has no tensor \"missing\"; read one of entries()"));
}

TEST_F(SafetensorsTest, FilesThatAreNotSafetensors) {
  const std::string tail = "; restore it from a copy or use an earlier one";
  std::string path = PathWith("short");
  EXPECT_EQ(SafetensorsFile::Open(files_, path).status(),
            absl::DataLossError(path +
                                " is not a whole safetensors file: it "
                                "has only 5 bytes" +
                                tail));
  path = PathWith("PK\3\4 this is something else");
  EXPECT_EQ(SafetensorsFile::Open(files_, path).status().code(),
            absl::StatusCode::kDataLoss);
  path = PathWith(PythonFile().substr(0, 470));
  EXPECT_EQ(SafetensorsFile::Open(files_, path).status(),
            absl::DataLossError(path +
                                " is not a whole safetensors file: its "
                                "tensors take 47 bytes, but the file has 38 "
                                "after the header" +
                                tail));
  EXPECT_EQ(SafetensorsFile::Open(files_, Path("none")).status().message(),
            "cannot read " + Path("none") +
                ": No such file or directory; check the path");
}

TEST_F(SafetensorsTest, DamagedHeaders) {
  auto tensor = [](const std::string& fields) {
    return "{\"w\":{" + fields + "}}";
  };
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  EXPECT_EQ(ErrorFor(tensor(good), 8), "ok");
  EXPECT_EQ(ErrorFor(tensor(good) + "   ", 8), "ok");
  EXPECT_EQ(ErrorFor("[1]", 0), "its header is a list, not an object");
  EXPECT_EQ(ErrorFor("{\"w\":", 0), "its header is not valid JSON at byte 6");
  EXPECT_EQ(ErrorFor("{} {}", 0), "its header is not valid JSON at byte 4");
  EXPECT_EQ(ErrorFor("{\"w\":1}", 0),
            "its header entry \"w\" has a number in the wrong place");
  EXPECT_EQ(ErrorFor(tensor(good + ",\"x\":1"), 8),
            "its header entry \"w\" has the unknown field \"x\"");
  EXPECT_EQ(ErrorFor(tensor(R"("dtype":"F32","shape":[2])"), 8),
            "its header entry \"w\" lacks dtype, shape or two data_offsets");
  EXPECT_EQ(
      ErrorFor(tensor(R"("dtype":"F8","shape":[2],"data_offsets":[0,2])"), 2),
      "its header entry \"w\" has dtype \"F8\", which the format does not "
      "have");
  EXPECT_EQ(
      ErrorFor(tensor(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), 8),
      "its header entry \"w\" has a negative number in the wrong place");
  EXPECT_EQ(
      ErrorFor(tensor(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), 8),
      "its header entry \"w\" has data_offsets [0, 8], but F32[3] takes 12 "
      "bytes");
  EXPECT_EQ(ErrorFor(tensor(R"("dtype":"F32","shape":[4294967296,4294967296],)"
                            R"("data_offsets":[0,0])"),
                     0),
            "its header entry \"w\" has a shape of more than 2^63 bits");
  EXPECT_EQ(
      ErrorFor(tensor(R"("dtype":"F32","shape":[0,4294967296,4294967296],)"
                      R"("data_offsets":[0,0])"),
               0),
      "its header entry \"w\" has extents of 2^60 and more");
  // Entries that no tensor can hold are measured all the same.
  EXPECT_EQ(
      ErrorFor(tensor(R"("dtype":"U8","shape":[1,1,1,1,1,1,3],)"
                      R"("data_offsets":[0,1])"),
               1),
      "its header entry \"w\" has data_offsets [0, 1], but U8[1, 1, 1, 1, "
      "1, 1, 3] takes 3 bytes");
  EXPECT_EQ(
      ErrorFor(tensor(R"("dtype":"C64","shape":[2],)"
                      R"("data_offsets":[0,8])"),
               8),
      "its header entry \"w\" has data_offsets [0, 8], but C64[2] takes 16 "
      "bytes");
  EXPECT_EQ(ErrorFor(tensor(R"("dtype":"F4","shape":[3],)"
                            R"("data_offsets":[0,1])"),
                     1),
            "its header entry \"w\" is F4[3], which takes no whole bytes");
  EXPECT_EQ(ErrorFor("{\"w\":{" + good + "},\"w\":{" + good + "}}", 8),
            "its header entry \"w\" occurs twice");
}

// Every dtype of the format is measured, whether a tensor can have it or not.
TEST_F(SafetensorsTest, ListsEntriesThatNoTensorHolds) {
  struct Other {
    const char* dtype;
    const char* shape;
    int bytes;
  };
  const std::vector<Other> others = {
      {"BOOL", "[1, 1, 8, 8]", 64},
      {"I8", "[3]", 3},
      {"I16", "[3]", 6},
      {"U16", "[2, 2]", 8},
      {"U32", "[2]", 8},
      {"U64", "[]", 8},
      {"C64", "[2]", 16},
      {"F4", "[2, 3]", 3},
      {"F6_E2M3", "[4]", 3},
      {"F6_E3M2", "[8]", 6},
      {"F8_E4M3", "[5]", 5},
      {"F8_E5M2", "[5]", 5},
      {"F8_E8M0", "[5]", 5},
      {"F8_E4M3FNUZ", "[5]", 5},
      {"F8_E5M2FNUZ", "[5]", 5},
      {"F32", "[1, 1, 1, 1, 1, 1, 2]", 8},
  };
  for (const Other& other : others) {
    const std::string header = absl::StrCat(
        R"({"w":{"dtype":")", other.dtype, R"(","shape":)", other.shape,
        R"(,"data_offsets":[4,)", 4 + other.bytes,
        R"(]},"x":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})");
    std::string length(8, '\0');
    length[0] = static_cast<char>(header.size());
    const std::string path =
        PathWith(length + header + std::string(4 + other.bytes, '\0'));
    const auto file = SafetensorsFile::Open(files_, path);
    ASSERT_TRUE(file.ok()) << other.dtype << ": " << file.status();
    EXPECT_TRUE(file->Read("x", allocator_).ok());
    const SafetensorsEntry& w = *file->Find("w");
    EXPECT_EQ(w.ToString(), absl::StrCat(other.dtype, other.shape));
    EXPECT_FALSE(w.Is(w.dtype, w.shape));
    EXPECT_EQ(file->Read("w", allocator_).status(),
              absl::InvalidArgumentError(
                  absl::StrCat(path, ": tensor \"w\" is ", w.ToString(),
                               ", which cannot be read; convert it")));
    const Tensor scalar = Tensor::Empty({}, DType::kF32, allocator_);
    EXPECT_EQ(file->Read("w", scalar).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(SafetensorsTest, NamesFilesOfOtherFormats) {
  const auto error_for = [&](const std::string& contents) {
    const std::string path = PathWith(contents);
    const absl::Status status = SafetensorsFile::Open(files_, path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    std::string message(status.message());
    EXPECT_EQ(message.substr(0, path.size() + 4), path + " is ");
    message = message.substr(path.size() + 4);
    return message.substr(0, message.find(';'));
  };
  // Returns the beginning of a zip archive whose first file has this name.
  const auto zip = [](const std::string& name) {
    std::string head("PK\3\4\0\0\10\10", 8);
    head += std::string(18, '\0');
    head += std::string{static_cast<char>(name.size()), '\0', '\0', '\0'};
    return head + name + std::string(64, '\0');
  };
  EXPECT_EQ(error_for("version https://git-lfs.github.com/spec/v1\n"
                      "oid sha256:4d7a\nsize 548105171\n"),
            "a pointer of git-lfs");
  EXPECT_EQ(error_for(zip("archive/data.pkl")), "a file of torch.save");
  EXPECT_EQ(error_for(zip("model/data.pkl")), "a file of torch.save");
  EXPECT_EQ(error_for(zip("weight.npy")), "arrays of NumPy (.npz)");
  EXPECT_EQ(error_for(zip("readme.txt")), "a zip archive");
  EXPECT_EQ(error_for("PK\3\4 cut off"), "a zip archive");
  // torch.save before PyTorch 1.6 begins with the pickle of a number.
  EXPECT_EQ(error_for("\x80\2\x8a\nl\xfc\x9c"
                      "F\xf9 j\xa8P\x19."),
            "a file of torch.save");
  EXPECT_EQ(error_for(std::string("\x80\4\x95\x10\0\0\0\0\0\0\0}", 12)),
            "a pickle of Python");
  EXPECT_EQ(error_for("GGUF\3 and more"), "a model in GGUF");
  EXPECT_EQ(error_for("<!DOCTYPE html><title>Sign in</title>"),
            "a page of the web (HTML)");
  // A header of 0x380 bytes begins as a pickle does, and is none.
  std::string header = "{}";
  header.resize(0x380, ' ');
  EXPECT_EQ(ErrorFor(header, 0), "ok");
}

TEST_F(SafetensorsTest, OverlapsAndGaps) {
  auto two = [](int begin, int end) {
    return absl::StrCat(
        R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)",
        R"("b":{"dtype":"U8","shape":[4],"data_offsets":[)", begin, ",", end,
        "]}}");
  };
  EXPECT_EQ(ErrorFor(two(4, 8), 8), "ok");
  EXPECT_EQ(ErrorFor(two(3, 7), 8),
            "entry \"b\" begins at byte 3 of the data, where the one before "
            "ends at 4");
  EXPECT_EQ(ErrorFor(two(5, 9), 9),
            "entry \"b\" begins at byte 5 of the data, where the one before "
            "ends at 4");
  EXPECT_EQ(ErrorFor(two(4, 8), 7),
            "its tensors take 8 bytes, but the file has 7 after the header");
  EXPECT_EQ(ErrorFor(two(4, 8), 9),
            "its tensors take 8 bytes, but the file has 9 after the header");
}

// Writes a matrix whose odd columns, and a vector whose odd elements, belong to
// the second writer, which also writes its part first.
TEST(TensorPartsTest, HaveTheBytesOfOneWriter) {
  CachingAllocator memory;
  const Tensor matrix = Tensor::Empty({3, 4}, DType::kF32, memory);
  for (int i = 0; i < 12; ++i) matrix.data<float>()[i] = 0.5f + i;
  const Tensor bytes = Tensor::Empty({5}, DType::kU8, memory);
  for (int i = 0; i < 5; ++i) bytes.data<std::uint8_t>()[i] = 7 * i;
  base::PosixFileSystem files;
  const std::string whole = testing::TempDir() + "/whole.safetensors";
  ASSERT_TRUE(WriteSafetensors(files, whole,
                               {{"m", matrix}, {"b", bytes}, {"a", bytes}}, {})
                  .ok());

  std::vector<TensorPart> parts[2];
  for (const int writer : {0, 1}) {
    std::vector<TensorPart>& mine = parts[writer];
    mine = {{"a", bytes}, {"m", matrix}, {"b", bytes}};
    if (writer == 1) mine[0].Drop();
    for (TensorPart* part : {&mine[1], &mine[2]}) {
      part->ranges.clear();
      for (std::int64_t i = writer; i < part->shape.numel(); i += 2) {
        part->ranges.push_back({i, i, 1});
      }
    }
  }
  const std::string shared = testing::TempDir() + "/shared.safetensors";
  files.RemoveAll(shared).IgnoreError();
  PartsWritten written[2];
  for (const int writer : {1, 0}) {
    const auto done = WriteTensorParts(files, shared, parts[writer], {},
                                       /*is_first=*/writer == 0);
    ASSERT_TRUE(done.ok()) << done.status();
    written[writer] = *done;
    const bool is_whole = base::ReadWholeFile(files, shared, kBytesMax) ==
                          base::ReadWholeFile(files, whole, kBytesMax);
    EXPECT_EQ(is_whole, writer == 0);
  }
  EXPECT_EQ(written[0].layout, written[1].layout);
  EXPECT_EQ(written[0].data_bytes, 58);
  EXPECT_EQ(written[0].bytes + written[1].bytes, 58);

  parts[0][1].ranges.push_back({11, 0, 2});
  EXPECT_EQ(
      WriteTensorParts(files, shared, parts[0], {}, true).status(),
      absl::InvalidArgumentError(
          "tensor \"m\", f32[3, 4], has no elements [11, 13) from 0 on in "
          "f32[3, 4]; give ranges of both"));
}

}  // namespace
}  // namespace troupe::nn
