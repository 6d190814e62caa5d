# For tests that need what not every machine has: . tests/tools/skip_lib.sh
#
#   [[ -e /dev/kvm ]] || skip "no /dev/kvm here"

# Ends the test, and tells Bazel that it did not run, and why. Without the
# report, a script that ends with 0 has passed.
skip() {
  local name=${TEST_TARGET##*:}
  echo "skipped: $1"
  cat >"${XML_OUTPUT_FILE:-/dev/null}" <<XML
<testsuites><testsuite name="$name" tests="1" skipped="1">
<testcase name="$name" status="notrun"><skipped message="$1"/></testcase>
</testsuite></testsuites>
XML
  exit 0
}
