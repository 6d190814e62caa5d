// Reports what the ranks of a spanning group in one process wait for, and since
// when: for errors, and for the detection of ranks that wait for each other.
//
//   WaitReport waits(&context, &table, &messages);
//   std::vector<Waiting> now = waits.Of(place);
//   waits.Record();                         // the group is being aborted
//   std::vector<Waiting> then = waits.Of(place);
//
// Not thread-safe: used under the group's lock.

#ifndef COMM_SPANNING_WAIT_REPORT_H_
#define COMM_SPANNING_WAIT_REPORT_H_

#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/spanning/frames/messages.h"
#include "comm/spanning/group_context.h"
#include "comm/spanning/operation/operation_table.h"

namespace troupe::comm::internal {

class WaitReport {
 public:
  // The arguments outlive the report.
  WaitReport(const GroupContext* context, const OperationTable* table,
             const SpanningMessages* messages)
      : context_(*context), table_(*table), messages_(*messages) {}

  // Returns what the rank at `place` waits for, or waited for at Record().
  std::vector<Waiting> Of(int place) const;
  // Records the waits of all ranks here; called when the group is aborted.
  void Record();
  // Records, after Record(), that a rank was refused its next collective.
  void RecordRefused(int place, const Collective& collective);

  // Returns "barrier(), collective 7 of the group: not started by rank 1 in
  // process 0; ...".
  std::string Describe(int place, const Operation& op) const;
  // Returns the same for the first collective or message that a rank has not
  // completed; empty if there is none.
  std::string FirstOf(int place) const;
  // Returns what is waited for first in the group: "rank 1 waited for ...".
  std::string First() const;

 private:
  std::vector<Waiting> Now(int place) const;
  std::vector<int> AbsentAt(const Operation& op, int member) const;
  std::string AbsentText(const Operation& op) const;

  const GroupContext& context_;
  const OperationTable& table_;
  const SpanningMessages& messages_;
  std::vector<std::vector<Waiting>> recorded_;  // index: place; or empty
};

}  // namespace troupe::comm::internal

#endif  // COMM_SPANNING_WAIT_REPORT_H_
