#!/bin/sh
# make: a thousand targets with pattern rules, functions, two jobs at a time and a second run that finds nothing to do.
# Packages: make

. "$(dirname "$0")/lib.sh"
begin 120
need make
version "$(make --version)"

cat >"$dir/data/Makefile" <<'MAKE'
digits := 0 1 2 3 4 5 6 7 8 9
names := $(foreach a,$(digits),$(foreach b,$(digits),$(foreach c,$(digits),n$a$b$c)))
some := $(filter %7 %3,$(names))
define rule
$(1).two: $(1).one
	@cp $$< $$@
endef
.PHONY: all
all: sum
$(foreach n,$(some),$(eval $(call rule,$(n))))
%.one:
	@echo $* >$@
sum: $(some:=.two)
	@sort $^ | sha256sum >$@
	@cat $@
	$(info $(words $(names)) names, $(words $(sort $(names:n%=m%) $(names))) sorted, $(lastword $(names)))
MAKE

prove make make --version

work() {
    make -j2 -f "$dir/data/Makefile"
    make -f "$dir/data/Makefile"
    make -f "$dir/data/Makefile" -p -n | grep -c ':'
}

compare work
same_files sum
