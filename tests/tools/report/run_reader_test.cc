// Run folders as a run leaves them, and as nobody should.

#include "tools/report/run_reader.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "pipeline/plan_json.h"
#include "pipeline/table/action_rules.h"
#include "tests/base/fresh_path.h"
#include "tests/tools/report/made_run.h"
#include "tools/report/report_data.h"
#include "tools/report/report_page.h"
#include "tools/report/step_json.h"

namespace troupe::tools {
namespace {

constexpr char kTrace[] = R"({"traceEvents":[
{"ph":"M","pid":0,"tid":1,"name":"thread_name","args":{"name":"compute"}},
{"ph":"C","pid":0,"ts":99,"name":"memory","args":{"bytes":64}},
{"ph":"B","pid":0,"tid":1,"ts":100,"name":"F0","cat":"action","args":{"step":3}},
{"ph":"i","pid":0,"tid":1,"ts":105,"name":"x","cat":"bucket","args":{"step":3}},
{"ph":"E","pid":0,"tid":1,"ts":110.5,"name":"F0","cat":"action","args":{"step":3}},
{"ph":"C","pid":0,"ts":110.5,"name":"memory","args":{"bytes":128}},
{"ph":"B","pid":0,"tid":10,"ts":111,"name":"AR4","cat":"collective","args":{"step":3}},
{"ph":"B","pid":0,"tid":11,"ts":112,"name":"LR","cat":"collective","args":{"step":3}},
{"ph":"E","pid":0,"tid":10,"ts":113,"name":"AR4","cat":"collective","args":{"step":3}},
{"ph":"B","pid":0,"tid":1,"ts":120,"name":"B0","cat":"action","args":{"step":3}}
],"otherData":{"dropped_events":2}})";

class RunReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    Write(kFactsFile, FactsToJson(Facts()));
    Write(kRunPlanFile, pipeline::PlanToJson(OneRank()));
  }
  void Write(const std::string& name, absl::string_view text) {
    ASSERT_TRUE(files_.CreateFolder(folder_).ok());
    const absl::Status status =
        base::WriteWholeFile(files_, base::JoinPath(folder_, name), text);
    ASSERT_TRUE(status.ok()) << status;
  }
  // Returns the error on a file with this text, without the path before it and
  // the advice behind it, which depends on whether a report needs the file.
  std::string ErrorWith(const std::string& name, absl::string_view text) {
    Write(name, text);
    const absl::Status status = ReadRun(files_, folder_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    const std::string path = absl::StrCat(folder_, "/", name, ": ");
    const std::string message(status.message());
    const std::string advice =
        name == kFactsFile || name == kRunPlanFile
            ? "; repeat the run with --run-dir"
            : "; remove this file, to make the report without it";
    absl::string_view part = message;
    EXPECT_TRUE(absl::ConsumePrefix(&part, path)) << message;
    EXPECT_TRUE(absl::ConsumeSuffix(&part, advice)) << message;
    return std::string(part);
  }
  std::string TraceError(const std::string& from, const std::string& to) {
    const std::string text = absl::StrReplaceAll(kTrace, {{from, to}});
    EXPECT_NE(text, kTrace) << from;
    return ErrorWith(kRunTraceFile, text);
  }

  base::PosixFileSystem files_;
  const std::string folder_ = base::FreshPath();
};

TEST_F(RunReaderTest, ReadsWhatARunLeaves) {
  Write(kRunTraceFile, kTrace);
  Write(kRunMetricsFile,
        R"({"kind":"train","step":1,"loss":2.5,"lr":0.1})"
        "\n"
        R"({"kind":"train","step":2,"loss":null,"loss_text":"nan"})"
        "\n\n"
        R"({"kind":"evaluation","step":2,"loss":2.25,"accuracy":0.5})"
        "\n"
        R"({"kind":"train","step":1,"loss":3})"
        "\n"
        R"({"kind":"train","st)");
  const auto run = ReadRun(files_, folder_);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->facts.parameters, 1234);
  EXPECT_EQ(run->facts.costs.stages.size(), 1u);
  ASSERT_EQ(run->trace.bars.size(), 2u);  // LR and B0 have no end
  EXPECT_EQ(run->trace.bars[0].begin, 0);
  EXPECT_EQ(run->trace.bars[0].end, 10.5);
  EXPECT_EQ(run->trace.bars[0].step, 3);
  EXPECT_EQ(run->trace.bars[1].track, BarTrack::kComm);
  EXPECT_EQ(run->trace.bars[1].index, 4);
  ASSERT_EQ(run->trace.memory.size(), 2u);
  EXPECT_EQ(run->trace.memory[0].at, -1);
  EXPECT_EQ(run->trace.memory[1].bytes, 128);
  EXPECT_EQ(run->trace.dropped, 2);
  ASSERT_EQ(run->notes.size(), 1u);
  EXPECT_EQ(run->notes[0].substr(0, 28), "The timeline lacks 2 events,");
  ASSERT_EQ(run->metrics.train.size(), 2u);
  EXPECT_EQ(run->metrics.train[0].loss, 3);  // the later one
  EXPECT_EQ(run->metrics.train[1].loss, std::nullopt);
  ASSERT_EQ(run->metrics.evaluation.size(), 1u);
  EXPECT_EQ(run->metrics.evaluation[0].accuracy, 0.5);
}

TEST_F(RunReaderTest, SaysWhatIsMissing) {
  const auto run = ReadRun(files_, folder_);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->notes.size(), 2u);
  EXPECT_EQ(run->notes[0], "No curves: there is no metrics.jsonl.");
  const absl::Status none = ReadRun(files_, "/no/where").status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(none.message(),
            "/no/where has no run.json, so it is no run folder; make one by "
            "\"trainer train --run-dir=/no/where\"");
}

TEST_F(RunReaderTest, NamesFileAndLineOfWhatIsBroken) {
  EXPECT_EQ(ErrorWith(kRunMetricsFile, "{\"kind\":\"other\"}\n{\n"),
            "line 2 is no JSON from byte 1 on");
  EXPECT_EQ(ErrorWith(kRunMetricsFile, "\n{\"kind\":\"train\"}\n"),
            "line 2: step is missing");
  EXPECT_EQ(ErrorWith(kRunMetricsFile,
                      "{\"kind\":\"train\",\"step\":1,\"loss\":\"low\"}\n"),
            "line 1: loss is no number");
  EXPECT_EQ(ErrorWith(kRunMetricsFile, "[1]\n"), "line 1 is no JSON object");
  Write(kRunMetricsFile, "");
  EXPECT_EQ(ErrorWith(kFactsFile, "{\n\"format\": \"x\",\n}"),
            "line 3 is no JSON from byte 18 on");
  EXPECT_EQ(ErrorWith(kFactsFile, "{\"format\": \"x\"}"),
            "format is not \"troupe run 1\"");
  RunFacts facts = Facts();
  facts.costs.stages.resize(3);
  EXPECT_EQ(ErrorWith(kFactsFile, FactsToJson(facts)),
            "costs are of 3 stages, and plan.json has 1");
  Write(kFactsFile, FactsToJson(Facts()));
  EXPECT_NE(ErrorWith(kRunPlanFile, "{}"), "");
}

TEST_F(RunReaderTest, NamesTheEventThatIsBroken) {
  EXPECT_EQ(ErrorWith(kRunTraceFile, "{\"traceEvents\":[\n{\"ph\":\n"),
            "line 3 is no JSON from byte 24 on");
  EXPECT_EQ(ErrorWith(kRunTraceFile, "{}"),
            "line 1 is no timeline: traceEvents is missing");
  EXPECT_EQ(TraceError("\"ts\":100,", ""), "event 3: ts is missing");
  EXPECT_EQ(TraceError("\"F0\"", "\"F0 F1\""), "event 3: name is no action");
  EXPECT_EQ(TraceError("\"ts\":110.5", "\"ts\":90"),
            "event 5: ts is before the bar's begin");
  EXPECT_EQ(TraceError("\"bytes\":64", "\"bytes\":-1"),
            "event 2: bytes is not from 0 to 9223372036854775807");
  EXPECT_EQ(TraceError("\"pid\":0", "\"pid\":5000"),
            "event 2: pid is not from 0 to 1023");
  EXPECT_EQ(TraceError("\"pid\":0", "\"pid\":1"),
            "rank 1 is none of plan.json, which has ranks 0 to 0");
  EXPECT_EQ(TraceError("AR4", "1AR4"),
            "rank 0 runs chunk 1, and by plan.json it has chunks 0 to 0");
  EXPECT_EQ(ErrorWith(kRunTraceFile, std::string(100'000, '[')),
            "line 1 is no JSON from byte 100000 on");
}

TEST_F(RunReaderTest, NoNameGetsOutOfThePage) {
  constexpr char kHostile[] = "</script><script>alert(1)</script><!--\xff&";
  RunFacts facts = Facts();
  facts.model = facts.optimizer = kHostile;
  Write(kFactsFile, FactsToJson(facts));
  Write(kRunTraceFile, kTrace);
  const auto run = ReadRun(files_, folder_);
  ASSERT_TRUE(run.ok()) << run.status();
  const auto data = ReportData(*run);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(data->find_first_of("<>&"), std::string::npos);
  for (const char c : *data) ASSERT_TRUE(c >= 32 && c < 127);
  const std::string page = ReportPage(run->facts.model, *data);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_EQ(page.find("<!--"), std::string::npos);
  EXPECT_NE(page.find("&lt;/script&gt;&lt;script&gt;alert(1)"),
            std::string::npos);
  EXPECT_NE(page.find("\\u003c/script\\u003e"), std::string::npos);
  EXPECT_EQ(page.find("{{"), std::string::npos);
  EXPECT_EQ(page.find("http"), page.find("http-equiv"));
}

TEST(ReportPageTest, NamesAndColorsOfActionsFollowFromTheirRows) {
  const nlohmann::json words = ActionWords();
  EXPECT_EQ(words.size(), pipeline::ActionRules().size());
  EXPECT_EQ(words["F"].dump(), R"(["forward","forward","micro-batch"])");
  EXPECT_EQ(words["B"].dump(), R"(["backward","backward","micro-batch"])");
  EXPECT_EQ(words["I"].dump(),
            R"(["gradients of inputs","inputs","micro-batch"])");
  EXPECT_EQ(words["W"].dump(),
            R"(["gradients of weights","weights","micro-batch"])");
  EXPECT_EQ(words["SG"].dump(),
            R"(["hands a gradient over","transfer","micro-batch"])");
  EXPECT_EQ(words["LR"].dump(), R"(["all-reduce of the loss","comm","step"])");
  EXPECT_EQ(words["TR"].dump(),
            R"(["all-reduce over stages of bucket","comm","bucket"])");
  EXPECT_EQ(words["UP"].dump(), R"(["update of bucket","update","bucket"])");
  const std::string page = ReportPage("", "{}");
  for (const auto& [word, row] : words.items()) {
    const std::string color = row[1];
    EXPECT_NE(page.find("--" + color + ":"), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace troupe::tools
