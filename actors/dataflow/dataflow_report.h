// The report of a dataflow's run: the use of its channels.
//
//   for (const ChannelReport& channel : report.channels) {
//     Print(channel.name, channel.tensors, channel.in_flight_max);
//   }

#ifndef ACTORS_DATAFLOW_DATAFLOW_REPORT_H_
#define ACTORS_DATAFLOW_DATAFLOW_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace troupe::actors {

struct ChannelReport {
  std::string name;
  std::int64_t tensors = 0;
  // Maximum number of tensors sent and not yet handled; at most the capacity.
  int in_flight_max = 0;
};

struct DataflowReport {
  // Channels that a stage of this process writes, in the order in which they
  // were added.
  std::vector<ChannelReport> channels;
};

}  // namespace troupe::actors

#endif  // ACTORS_DATAFLOW_DATAFLOW_REPORT_H_
