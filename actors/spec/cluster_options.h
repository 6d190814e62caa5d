// Place of this process among those of a job, and how it reaches the others.
//
//   ClusterOptions cluster;
//   cluster.process = 1;
//   cluster.processes = 2;
//   cluster.master_host = "10.0.0.7";        // address of process 0
//   cluster.master_port = 29400;
//   cluster.certificates = {"certs/authority.pem", "certs/node.pem",
//                           "certs/node.key"};
//   spec.cluster = cluster;
//
// Each process runs the same job (JobSpec) with its own number; ranks are
// numbered through the processes, in order: with two ranks each, process 1 has
// ranks 2 and 3.

#ifndef ACTORS_SPEC_CLUSTER_OPTIONS_H_
#define ACTORS_SPEC_CLUSTER_OPTIONS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/tls/certificate_files.h"
#include "comm/connect/transport.h"

namespace troupe::actors {

using comm::Transport;

struct ClusterOptions {
  int process = 0;    // number of this one, from 0
  int processes = 1;  // number of all
  int ranks = 1;      // number of the job's ranks in this process

  // Address at which process 0 listens, and to which the others connect.
  std::string master_host = "127.0.0.1";
  int master_port = 0;
  // Called in process 0 when it listens, with the port: if master_port is 0,
  // the one that the system chose, for the other processes. May be null; its
  // error ends the job.
  std::function<absl::Status(int port)> on_listening;
  // Address at which this process listens for data of its peers. Empty: the one
  // by which it reaches process 0 (process 0: master_host).
  std::string data_host;
  base::tls::CertificateFiles certificates;
  // Whether the control connections have no TLS, so that any peer may connect.
  // Refused if master_host is a public address.
  bool insecure = false;

  // Transport of tensors; kAuto: shared memory within a host, TCP elsewhere.
  // With kMpi processes have the numbers of MPI_COMM_WORLD.
  Transport transport = Transport::kAuto;
  // Whether tensors by TCP are encrypted, too, with the same certificates.
  bool encrypt_data = false;

  // Notified from outside: a wait for other processes to join ends with an
  // error. May be null.
  std::shared_ptr<absl::Notification> give_up;
  // Limit on the time until all processes have joined.
  absl::Duration join_timeout = absl::Minutes(5);
  // Limit on the time until a process that gives no sign of life counts as
  // dead.
  absl::Duration liveness_timeout = absl::Seconds(10);

  // Called about each thing that the job does without. Any thread; may be null.
  std::function<void(const std::string& words)> warn;

  // Settings that must be equal in all processes, a line "name = value" for
  // each: the configuration as the user wrote it. An error names the first line
  // that differs.
  std::string agreement;
};

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_CLUSTER_OPTIONS_H_
