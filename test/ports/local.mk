# Other C libraries, widths and processors. `make check-ports` builds each in ports/ of the build folder and tests it;
# with the argument quick a stage runs some units, which .ci/run does.

ports_stages = \
	test/ports/musl.sh \
	test/ports/x86-32.sh \
	test/ports/aarch64.sh \
	test/ports/riscv64.sh

dist_noinst_SCRIPTS += $(ports_stages)
EXTRA_DIST += test/ports/lib.sh test/ports/musl.h

.PHONY: check-ports
check-ports:
	$(AM_V_at)failed=0; for stage in $(ports_stages); do \
		$(srcdir)/$$stage; case $$? in 0|77) ;; *) failed=1;; esac; done; exit $$failed

clean-local-ports:
	rm -rf ports
clean-local: clean-local-ports
