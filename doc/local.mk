# The guides, installed beside README.

dist_doc_DATA += doc/compatibility.md doc/design.md doc/hacking.md doc/performance.md doc/memory.md

# The manual pages. pamalloc(7) lists the options of src/options.def, and names the file that configure chose.
dist_man3_MANS += doc/pamalloc.3
nodist_man7_MANS = doc/pamalloc.7
EXTRA_DIST += doc/options.awk doc/pamalloc.7.in
CLEANFILES += doc/pamalloc.7

doc/pamalloc.7: doc/pamalloc.7.in doc/options.awk src/options.def Makefile
	$(AM_V_GEN)$(MKDIR_P) doc && $(AWK) -v conf='$(sysconfdir)/pamalloc.conf' -f $(srcdir)/doc/options.awk \
		$(srcdir)/src/options.def $(srcdir)/doc/pamalloc.7.in >$@.new && mv $@.new $@
