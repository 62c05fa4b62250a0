# The guides, installed beside README.

dist_doc_DATA += doc/compatibility.md doc/design.md doc/hacking.md
