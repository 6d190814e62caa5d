#include "pipeline/plan_json.h"

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "pipeline/plan_diff.h"
#include "tests/pipeline/plan_fixture.h"

namespace troupe::pipeline {
namespace {

// Returns the text without the spaces between its fields.
std::string Compact(const Plan& plan) {
  std::string text;
  bool quoted = false;
  for (char c : PlanToJson(plan)) {
    quoted ^= c == '"';
    if (quoted || (c != ' ' && c != '\n')) text.push_back(c);
  }
  return text;
}

// Returns the error for the small plan's text with `from` replaced by `to`.
std::string ErrorOf(const std::string& from, const std::string& to) {
  const std::string good = Compact(SmallPlan());
  EXPECT_NE(good.find(from), std::string::npos) << from << " in " << good;
  const auto plan = PlanFromJson(absl::StrReplaceAll(good, {{from, to}}));
  EXPECT_TRUE(absl::IsInvalidArgument(plan.status())) << plan.status();
  return std::string(plan.status().message());
}

TEST(PlanJsonTest, LooksLikeThis) {
  EXPECT_EQ(
      Compact(SmallPlan()),
      R"({"format":"troupe plan 1",)"
      R"("mesh":[{"name":"dp","size":2},{"name":"pp","size":2}],)"
      R"("cuts":["2"],"global_batch_size":8,"micro_batch_size":2,)"
      R"("micro_batches":2,"threads_per_rank":1,"inline_bytes":0,)"
      R"("fuse_updates":true,"update_needs_all_buckets":false,)"
      R"("dtype":"f32","grad_dtype":"","reduction_dtype":"",)"
      R"("data_dtype":"f32","loss_scale":1.0,)"
      R"("loss_scale_growth_interval":0,"loss_scale_min":0.0,)"
      R"("cross_step":false,"strict_order":false,)"
      R"("device":"cpu:0","kernels":"cpu:0, avx512",)"
      R"("reduction_order":"tree","algorithms":[],"stages":[)"
      R"({"pp":0,"chunk":0,"input":[2,3],"input_dtype":"f32",)"
      R"("more_inputs":[],"skips":[],"output":[2,4],"output_dtype":"f32","flops":56.0,)"
      R"("layer_axes":[],)"
      R"("parameters":[{"name":"0.weight","elems":12,"dtype":"f32"},)"
      R"({"name":"0.bias","elems":4,"dtype":"f32"}],"buckets":[[1],[0]],"frozen":[]},)"
      R"({"pp":1,"chunk":0,"input":[2,4],"input_dtype":"f32",)"
      R"("more_inputs":[],"skips":[],"output":[2,2],"output_dtype":"f32","flops":32.0,)"
      R"("layer_axes":[],)"
      R"("parameters":[{"name":"2.weight","elems":8,"dtype":"f32"},)"
      R"({"name":"2.bias","elems":2,"dtype":"f32"}],"buckets":[[0]],"frozen":[1]}],)"
      R"("ranks":[{"train":)"
      R"("F0 SA0 F1 SA1 LR RG0 B0 RG1 B1 AR0 UP0 AR1 UP1",)"
      R"("evaluate":"F0 SA0 RG0","reduce_inline":false},{"train":)"
      R"("RA0 F0 RA1 F1 LR B0 SG0 B1 SG1 AR0 UP0",)"
      R"("evaluate":"RA0 F0 SG0","reduce_inline":false}]})");
}

TEST(PlanJsonTest, ReadsWhatItWrites) {
  PlanOptions chunks = SmallOptions();
  chunks.mesh =
      Mesh::Create({{"tp", 2}, {"dp", 1}, {"pp", 1}, {"ep", 2}}).value();
  chunks.virtual_stages = 2;
  chunks.reductions.update_needs_all_buckets = true;
  chunks.dynamic_loss_scale.emplace().growth_interval = 7;
  chunks.reduction_dtype = nn::DType::kBF16;
  PlanOptions whole = SmallOptions();
  whole.mesh = Mesh(4);
  whole.cuts.clear();
  whole.inline_bytes = std::int64_t{1} << 40;
  whole.loss_scale = 0.1;
  whole.cross_step = true;
  whole.data_dtype = nn::DType::kF64;
  whole.algorithms = {{"GPU 1", {{"conv:a", "x:1"}, {"matmul:b", "lt.02"}}},
                      {"GPU 2", {{"conv:a", "x:2"}}}};
  for (const PlanOptions& options : {SmallOptions(), chunks, whole}) {
    const Plan plan = SmallPlan(options);
    const absl::StatusOr<Plan> read = PlanFromJson(PlanToJson(plan));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(PlanToJson(*read), PlanToJson(plan));
    EXPECT_EQ(read->ToString(), plan.ToString());
    for (std::size_t pp = 0; pp < plan.ranks.size(); ++pp) {
      EXPECT_EQ(read->ranks[pp].train, plan.ranks[pp].train) << "with needs";
      EXPECT_EQ(read->ranks[pp].evaluate, plan.ranks[pp].evaluate);
    }
    EXPECT_EQ(PlanHash(*read), PlanHash(plan));
    EXPECT_EQ(read->dynamic_loss_scale.has_value(),
              plan.dynamic_loss_scale.has_value());
  }
}

// A flag that is not set leaves texts and hashes as they were.
TEST(PlanJsonTest, AFlagIsWrittenWhereItIsSet) {
  const Plan plan = SmallPlan();
  Plan shares = plan;
  shares.stages[1].shares_buffers = true;
  EXPECT_EQ(PlanToJson(plan).find("shares_buffers"), std::string::npos);
  const absl::StatusOr<Plan> read = PlanFromJson(PlanToJson(shares));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->stages[0].shares_buffers);
  EXPECT_TRUE(read->stages[1].shares_buffers);
  EXPECT_NE(PlanHash(plan), PlanHash(shares));
  using Lines = std::vector<std::string>;
  EXPECT_EQ(Diff(plan, shares), Lines{"stages[1].shares_buffers: false, true"});
  EXPECT_EQ(Diff(shares, plan), Lines{"stages[1].shares_buffers: true, false"});
}

TEST(PlanJsonTest, WholeSizesAreWrittenOfPiecesAlone) {
  PlanOptions options = SmallOptions();
  options.mesh = Mesh(/*dp=*/2, /*pp=*/2, /*tp=*/2);
  const Plan copies = SmallPlan(options);
  EXPECT_FALSE(copies.SplitsParameters());
  EXPECT_EQ(PlanToJson(copies).find("split_elems"), std::string::npos);
  Plan pieces = copies;
  pieces.stages[0].split_elems = {24, 0};
  const absl::StatusOr<Plan> read = PlanFromJson(PlanToJson(pieces));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->stages[0].split_elems, pieces.stages[0].split_elems);
  EXPECT_TRUE(read->stages[1].split_elems.empty());
  EXPECT_TRUE(read->SplitsParameters());
  EXPECT_EQ(read->parameter_elems(), copies.parameter_elems() + 12);
  EXPECT_EQ(Diff(copies, pieces),
            std::vector<std::string>{
                "stages[0].parameters[0.weight].split_elems: 0, 24"});
  pieces.stages[0].split_elems = {25, 0};
  EXPECT_NE(pieces.Check(), absl::OkStatus());
  pieces.stages[0].split_elems = {24, 0};
  pieces.stages[0].buckets = {{1, 0}};
  pieces.ranks[0] = pieces.ranks[1];
  EXPECT_NE(pieces.Check(), absl::OkStatus());
}

TEST(PlanJsonTest, AHookIsWrittenWhereThereIsOne) {
  const Plan plan = SmallPlan();
  PlanOptions options = SmallOptions();
  options.hook = "halves";
  options.reductions.rounds = 2;
  const Plan hooked = SmallPlan(options);
  EXPECT_EQ(hooked.ranks[1].train.ToString(),
            "RA0 F0 RA1 F1 LR B0 SG0 B1 SG1 AR0 AR0.1 UP0");
  EXPECT_NE(hooked.ToString().find(", reduced by halves\n"), std::string::npos)
      << hooked.ToString();
  EXPECT_EQ(PlanToJson(plan).find("hook"), std::string::npos);
  const absl::StatusOr<Plan> read = PlanFromJson(PlanToJson(hooked));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->hook, "halves");
  EXPECT_EQ(read->ranks[1].train, hooked.ranks[1].train);
  EXPECT_NE(PlanHash(plan), PlanHash(hooked));
  EXPECT_EQ(Diff(plan, hooked).back(), "hook: \"\", \"halves\"");
}

TEST(PlanJsonTest, ReadsSkipConnections) {
  const Plan plan = SkipPlanOf();
  const absl::StatusOr<Plan> read = PlanFromJson(PlanToJson(plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(PlanToJson(*read), PlanToJson(plan));
  EXPECT_EQ(read->stages[2].skips[0].name, "deep");
  EXPECT_NE(Compact(plan).find(
                R"("skips":[{"name":"deep","shape":[2,4],"dtype":"f32"}])"),
            std::string::npos)
      << Compact(plan);
}

std::string Golden(const std::string& name) {
  std::ifstream file("tests/golden/plans/" + name);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

// These texts stay readable if each new field of a plan is a Later() field
// (pipeline/plan_fields.h) whose default is what its absence stood for.
TEST(PlanJsonTest, TextsOfEarlierVersionsAreRead) {
  for (const char* name : {"1.json", "2.json"}) {
    const absl::StatusOr<Plan> plan = PlanFromEarlierJson(Golden(name));
    ASSERT_TRUE(plan.ok()) << name << ": " << plan.status();
    EXPECT_EQ(PlanToJson(*plan), PlanToJson(SmallPlan())) << name;
  }
  // A peer has the same version.
  EXPECT_EQ(PlanFromJson(Golden("1.json")).status(),
            absl::InvalidArgumentError("plan: reduction_dtype is missing"));
  // The fields of the first version are required.
  EXPECT_EQ(PlanFromEarlierJson("{}").status(),
            absl::InvalidArgumentError("plan: format is missing"));
  const std::string f64 =
      absl::StrReplaceAll(Golden("1.json"), {{"\"f32\"", "\"f64\""}});
  EXPECT_EQ(PlanFromEarlierJson(f64)->data_dtype, nn::DType::kF64);
}

TEST(PlanJsonTest, OnePlaceIsOneText) {
  PlanOptions by_name = SmallOptions();
  by_name.cuts = {"2"};
  EXPECT_EQ(PlanToJson(SmallPlan(by_name)), PlanToJson(SmallPlan()));
  EXPECT_EQ(PlanHash(SmallPlan(by_name)), PlanHash(SmallPlan()));
  const Plan nested = NestedPlan();
  EXPECT_EQ(nested.cuts, std::vector<std::string>{"0.1"});
  EXPECT_EQ(PlanHash(NestedPlan({"0.1.0"})), PlanHash(nested));
  EXPECT_NE(PlanHash(NestedPlan({1})), PlanHash(nested));
  EXPECT_EQ(PlanToJson(PlanFromJson(PlanToJson(nested)).value()),
            PlanToJson(nested));
  EXPECT_EQ(nested.stages[1].parameters,
            (std::vector<std::string>{"0.1.0.weight", "0.1.0.bias"}));
}

TEST(PlanJsonTest, TheHashIsThatOfTheText) {
  // The FNV-1a hash of the text, as other programs would compute it. If it
  // changes, the format has changed.
  EXPECT_EQ(absl::StrCat(absl::Hex(PlanHash(SmallPlan()))), "ba446b74f0be42bc");
  PlanOptions options = SmallOptions();
  options.kernels = "cpu:0, avx2";
  EXPECT_NE(PlanHash(SmallPlan(options)), PlanHash(SmallPlan()));
}

TEST(PlanJsonTest, ErrorsNameTheField) {
  EXPECT_EQ(ErrorOf(R"("cuts":["2"])", R"("cuts":["2",3])"),
            "plan: cuts[1] is no text");
  EXPECT_EQ(
      ErrorOf(R"("cuts":["2"])",
              absl::StrCat("\"cuts\":[\"", std::string(1025, '2'), "\"]")),
      "plan: cuts[0] has more than 1024 letters");
  EXPECT_EQ(ErrorOf(R"("micro_batches":2,)", ""),
            "plan: micro_batches is missing");
  EXPECT_EQ(ErrorOf(R"("cuts":["2"])", R"("cuts":["2"],"colour":1)"),
            "plan: the text has the unknown field \"colour\"");
  EXPECT_EQ(ErrorOf(R"("elems":8)", R"("elems":-8)"),
            "plan: stages[1].parameters[0].elems is no integer from 0 to "
            "9223372036854775807");
  EXPECT_EQ(ErrorOf(R"("elems":8)", R"("elems":18446744073709551615)"),
            "plan: stages[1].parameters[0].elems is no integer from 0 to "
            "9223372036854775807");
  EXPECT_EQ(ErrorOf(R"("elems":8)", R"("elems":8.5)"),
            "plan: stages[1].parameters[0].elems is no integer from 0 to "
            "9223372036854775807");
  EXPECT_EQ(ErrorOf("[[1],[0]]", "[[1],0]"),
            "plan: stages[0].buckets[1] is no list");
  EXPECT_EQ(ErrorOf("[[1],[0]]", "[[1],[true]]"),
            "plan: stages[0].buckets[1][0] is no integer from 0 to 2147483647");
  EXPECT_EQ(ErrorOf("[[1],[0]]", "[[1],[1]]"),
            "plan: stages[0].buckets[1] has parameter 1 a second time");
  EXPECT_EQ(ErrorOf(R"("F0 SA0 RG0")", R"("F0 SA0 RX0")"),
            "plan: ranks[0].evaluate: \"RX0\" is no action; write F0, B0, "
            "AR0, ...");
  EXPECT_EQ(ErrorOf(R"("F0 SA0 RG0")", R"("F0 SA0")"),
            "plan: ranks[0].evaluate: RG0 is missing");
  EXPECT_EQ(ErrorOf(R"("F0 SA0 RG0")", "7"),
            "plan: ranks[0].evaluate is no text");
  EXPECT_EQ(ErrorOf(R"("fuse_updates":true)", R"("fuse_updates":1)"),
            "plan: fuse_updates is neither true nor false");
  EXPECT_EQ(ErrorOf(R"("input":[2,3])", R"("input":[1,1,1,1,1,1,1])"),
            "plan: stages[0].input has more than 6 entries");
  EXPECT_EQ(ErrorOf(R"("input":[2,3])", R"("input":[4611686018427387904,8])"),
            "plan: stages[0].input is larger than shapes are");
  EXPECT_EQ(ErrorOf("troupe plan 1", "troupe plan 2"),
            "plan: format is not \"troupe plan 1\"");
  EXPECT_EQ(ErrorOf(R"("flops":56.0)", R"("flops":null)"),
            "plan: stages[0].flops is no number");
  EXPECT_EQ(ErrorOf(R"("loss_scale":1.0)", R"("loss_scale":0)"),
            "plan: loss_scale is not a number above 0");
  EXPECT_EQ(ErrorOf(R"("loss_scale_growth_interval":0)",
                    R"("loss_scale_growth_interval":-1)"),
            "plan: loss_scale_growth_interval is no integer from 0 to "
            "9223372036854775807");
  EXPECT_EQ(ErrorOf(R"("reduction_dtype":"")", R"("reduction_dtype":"i32")"),
            "plan: reduction_dtype is no floating type");
  EXPECT_EQ(ErrorOf(R"("data_dtype":"f32")", R"("data_dtype":"i64")"),
            "plan: data_dtype is no floating type");
  EXPECT_EQ(ErrorOf(R"("name":"dp","size":2)", R"("name":"dp","size":0)"),
            "plan: mesh[0].size is no integer from 1 to 1048576");
  EXPECT_EQ(ErrorOf(R"("name":"dp")", R"("name":"pp")"),
            "mesh: axis pp is there twice; name each once");
}

TEST(PlanJsonTest, AlgorithmsAreTwoWordsEach) {
  const auto with = [](const std::string& entries) {
    return ErrorOf(R"("algorithms":[])",
                   absl::StrCat(R"("algorithms":[)", entries, "]"));
  };
  const auto chosen = [&](const std::string& choices) {
    return with(absl::StrCat(R"({"device":"G","choices":[)", choices, "]}"));
  };
  const std::string no_words =
      "plan: algorithms has a choice for G that is not two words";
  EXPECT_EQ(chosen("\"conv\""), no_words);
  EXPECT_EQ(chosen("\"conv \""), no_words);
  EXPECT_EQ(chosen("\"a b c\""), no_words);
  EXPECT_EQ(chosen("\"a \\n\""), no_words);
  EXPECT_EQ(chosen("7"), "plan: algorithms[0].choices[0] is no text");
  EXPECT_EQ(chosen(R"("a b","a c")"),
            "plan: algorithms[0].choices[1] is of the key of another one");
  EXPECT_EQ(chosen(absl::StrCat("\"a ", std::string(2400, 'b'), "\"")),
            "plan: algorithms[0].choices[0] has more than 2305 letters");
  EXPECT_EQ(with(R"({"device":"","choices":[]})"),
            "plan: algorithms has a device that is no line of text");
  const std::string twice = R"({"device":"G","choices":[]})";
  EXPECT_EQ(with(absl::StrCat(twice, ",", twice)),
            "plan: algorithms[1] is of the device of another entry");
}

TEST(PlanJsonTest, TextsThatAreNoPlans) {
  const auto error = [](const std::string& text) {
    return std::string(PlanFromJson(text).status().message());
  };
  EXPECT_EQ(error(""), "plan: the text is not valid JSON");
  EXPECT_EQ(error("{"), "plan: the text is not valid JSON");
  EXPECT_EQ(error("[]"), "plan: the text is no object");
  EXPECT_EQ(error("{}"), "plan: format is missing");
  EXPECT_EQ(error(std::string(1 << 20, '[')),
            "plan: the text has more than 8 brackets within each other");
  EXPECT_EQ(error(std::string(kPlanBytesMax + 1, ' ')),
            "plan: the text has more than 16777216 bytes");
}

}  // namespace
}  // namespace troupe::pipeline
