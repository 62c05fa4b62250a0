// Does a program work that replaces the plain operators new and delete, and counts on all others to
// lead there, as the C++ library's do? Its blocks are none of malloc's.
#include "../harness.h"

#include <new>

// What this program leaves out is what it is about.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wsized-deallocation"
#endif

namespace {

alignas(64) char heap[1 << 16];
size_t used;
size_t taken;
size_t given;
bool is_empty;

bool is_own(const void *block) {
    const char *place = static_cast<const char *>(block);
    return place >= heap && place < heap + sizeof(heap);
}

struct record {
    int numbers[10];
};

struct alignas(128) wide {
    char bytes[200];
};

} // namespace

void *operator new(size_t size) {
    if (is_empty) {
        throw std::bad_alloc();
    }
    void *block = heap + used;
    used += (size + 15) / 16 * 16;
    REQUIRE(used <= sizeof(heap));
    taken++;
    return block;
}

void operator delete(void *block) noexcept {
    REQUIRE(block == nullptr || is_own(block));
    given += block != nullptr;
}

int main() {
    test_begin(20);
    record *one = static_cast<record *>(hide(new record));
    CHECK(is_own(one));
    delete one;
    record *some = static_cast<record *>(hide(new record[5]));
    CHECK(is_own(some));
    delete[] some;
    CHECK_EQ(taken, 2);
    CHECK_EQ(given, 2);

    void *block = operator new(100, std::nothrow);
    CHECK(is_own(block));
    operator delete(block, std::nothrow);
    block = operator new[](100, std::nothrow);
    CHECK(is_own(block));
    operator delete[](block, std::nothrow);
    block = operator new[](100);
    operator delete[](block, static_cast<size_t>(100));
    block = operator new(100);
    operator delete(block, static_cast<size_t>(100));
    CHECK_EQ(taken, 6);
    CHECK_EQ(given, 6);

    // What the replaced one throws, the forms that do not throw keep to themselves.
    is_empty = true;
    CHECK(operator new(100, std::nothrow) == nullptr);
    CHECK(operator new[](100, std::nothrow) == nullptr);
    bool is_thrown = false;
    try {
        block = hide(operator new[](100));
    } catch (const std::bad_alloc &) {
        is_thrown = true;
    }
    CHECK(is_thrown);
    is_empty = false;

    // Aligned forms stand by themselves.
    wide *aligned = static_cast<wide *>(hide(new wide));
    CHECK(!is_own(aligned));
    CHECK_EQ(reinterpret_cast<uintptr_t>(aligned) % 128, 0);
    delete aligned;
    aligned = static_cast<wide *>(hide(new wide[3]));
    CHECK(!is_own(aligned));
    delete[] aligned;
    CHECK_EQ(taken, 6);
    CHECK_EQ(given, 6);
    return test_end();
}
