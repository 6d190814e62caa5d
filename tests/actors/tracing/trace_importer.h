// Reads a trace as Perfetto does (importers/json/json_trace_parser.cc and
// common/flow_tracker.cc), to find which parts of it Perfetto would show.
//
//   const ImportedTrace trace = ImportTrace(json);
//   EXPECT_EQ(trace.problems, "");
//   trace.arrows.count({"0/compute/B0", "0/comm/AR0"});

#ifndef TESTS_ACTORS_TRACING_TRACE_IMPORTER_H_
#define TESTS_ACTORS_TRACING_TRACE_IMPORTER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

struct ImportedSlice {
  std::string where;          // "0/compute/B0": rank, track, name
  std::int64_t step = 0;      // 0: it has none
  double begin = 0, end = 0;  // us
  std::map<std::string, std::string> facts;  // texts that are shown with it
};

struct ImportedTrace {
  std::vector<ImportedSlice> slices;  // slices in the order of their begins
  // Number of arrows from a slice to a slice, by `where` of both.
  std::map<std::pair<std::string, std::string>, int> arrows;
  // Values of counters in their order, by process and name.
  std::map<std::pair<int, std::string>, std::vector<std::int64_t>> counters;
  // A line for each thing that the importer would drop or misplace.
  std::string problems;

  int CountSlices(const std::string& where) const;
};

ImportedTrace ImportTrace(const std::string& json);

}  // namespace troupe::actors

#endif  // TESTS_ACTORS_TRACING_TRACE_IMPORTER_H_
