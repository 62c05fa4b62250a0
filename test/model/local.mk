# The protocol of remote frees as a model, and the search through it. It does not look at the library, so a sanitizer's
# build need not repeat it.

dist_check_SCRIPTS += test/model/run-spin.sh
EXTRA_DIST += test/model/remote.pml test/model/misuse.pml
if !SANITIZED
TESTS += test/model/run-spin.sh
endif
