#!/bin/bash
# contributing_example.sh PAGE FILE: prints the code block of PAGE that follows
# the line `FILE`: in backquotes.
exec awk -v name="\`$2\`:" '
  $0 == name { wanted = 1 }
  /^```/ && inside { exit }
  inside { print }
  /^```cpp$/ && wanted { inside = 1 }
' "$1"
