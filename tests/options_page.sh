#!/bin/sh
# Catches options that docs/OPTIONS.md does not have, or has otherwise: tools/options-page >docs/OPTIONS.md
. "$(dirname "$0")/case.inc"
what='docs/OPTIONS.md'
"$tree/tools/options-page" "$heed" >page 2>err
diff "$tree/docs/OPTIONS.md" page >out
verdict $? 'options have changed: tools/options-page >docs/OPTIONS.md'
finish
