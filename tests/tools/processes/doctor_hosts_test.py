"""trainer doctor on three hosts: what it says of every two of them, and of one
that is cut off."""

import os
import re
import sys

sys.path.insert(0, os.path.join("tests", "tools", "processes"))

import several_processes  # pylint: disable=wrong-import-position
from several_processes import (  # pylint: disable=wrong-import-position
    DEADLINE_S, NETWORK_HOSTS, TRAINER)

HOSTS = ["10.0.0.%d" % host for host in (1, 2, 3)]

# Doctors listen on hosts 1 and 2; host 0 asks, again and again until both do.
SCRIPT = """
for host in 1 2; do
  eval "words=\\$HOST$host"
  $words {trainer} doctor --listen {certs} &
  doctors="$doctors $!"
done
ask="$HOST0 {trainer} doctor --hosts={hosts} {certs}"
until $ask >out.txt; ! grep -q 'no doctor listens' out.txt; do :; done
cat out.txt
echo cut
$SWITCH ip link set host2 down
$ask
code=$?
kill $doctors
exit $code
"""


class DoctorHostsTest(several_processes.TrainingTest):

    def test_three_hosts(self):
        self.needs_hosts()
        program = self.start(
            [NETWORK_HOSTS, "--hosts=3", "--", "sh", "-c", SCRIPT.format(
                trainer=TRAINER, certs=self.certificates(),
                hosts=",".join(HOSTS))])
        code = program.end(DEADLINE_S)
        printed = program.out() + program.err()
        whole, _, cut = printed.partition("\ncut\n")
        for a in HOSTS:
            for b in HOSTS:
                if a == b:
                    continue
                self.assertRegex(whole, r"\n%s to %s  +(ok|warning) +\d+ us "
                                 r"there and back, \d+ MB/s" % (
                                     re.escape(a), re.escape(b)))
        for host in HOSTS[1:]:
            self.assertRegex(whole, r"\n%s version +ok " % re.escape(host))
        self.assertRegex(cut, r"\n%s to %s  +" % tuple(
            map(re.escape, HOSTS[:2])))
        self.assertRegex(cut, r"\n%s doctor +problem " % re.escape(HOSTS[2]))
        self.assertEqual(code, 1, printed)


if __name__ == "__main__":
    several_processes.main()
