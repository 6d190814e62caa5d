// Which process of a job this one is, and how it reaches the others.
//
//   ClusterOptions cluster;
//   cluster.process = 1;
//   cluster.processes = 2;
//   cluster.master_host = "10.0.0.7";        // where process 0 listens
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
  int process = 0;
  int processes = 1;
  int ranks = 1;  // of the job that live in this process

  // Process 0 listens there; the others connect.
  std::string master_host = "127.0.0.1";
  int master_port = 0;
  // Called in process 0 when it listens there, with the port that it got where
  // master_port is 0: so the others can be told. May be null; its error ends
  // the job.
  std::function<absl::Status(int port)> on_listening;
  // Where this process listens for data of its peers; empty: at the address by
  // which it reaches process 0 (process 0: master_host).
  std::string data_host;
  base::tls::CertificateFiles certificates;
  // Speaks without TLS, to whoever asks. Refused where master_host is a public
  // address.
  bool insecure = false;

  // How tensors travel: shared memory within a host, else TCP, unless it
  // says otherwise. With kMpi processes have the numbers of MPI_COMM_WORLD.
  Transport transport = Transport::kAuto;
  // Tensors by TCP are encrypted, too, with the same certificates.
  bool encrypt_data = false;

  // Notified: whoever waits for others to join gives up. May be null.
  std::shared_ptr<absl::Notification> give_up;
  // All processes have joined by then.
  absl::Duration join_timeout = absl::Minutes(5);
  // A process that gives no sign of life for so long is taken for dead.
  absl::Duration liveness_timeout = absl::Seconds(10);

  // Told of what the job does without. Any thread; may be null.
  std::function<void(const std::string& words)> warn;

  // What must be equal in all processes, a line "name = value" for each: the
  // configuration, as the user wrote it. The first line that differs is told.
  std::string agreement;
};

}  // namespace troupe::actors

#endif  // ACTORS_SPEC_CLUSTER_OPTIONS_H_
