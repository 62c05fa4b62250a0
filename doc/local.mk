# The guides, installed beside README.

dist_doc_DATA += doc/hacking.md
