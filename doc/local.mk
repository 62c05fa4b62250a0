# The guides, installed beside README.

dist_doc_DATA += doc/design.md doc/hacking.md
