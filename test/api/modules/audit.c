// audit.so - the smallest auditor of the dynamic loader: it is loaded into a namespace of its own.
unsigned la_version(unsigned version);

__attribute__((visibility("default"))) unsigned la_version(unsigned version) {
    return version;
}
