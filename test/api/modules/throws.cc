// throws.cc - a library in C++ whose requests fail: what it does about it itself, and what leaves
// it.
//
// Compiled as a program of its own too (PROGRAM), for the ways of linking a C++ library.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>

extern "C" {
void *throws_demand(size_t size);
int throws_work(void);
}

namespace {

size_t too_much() {
    size_t size = static_cast<size_t>(PTRDIFF_MAX) - 100;
    __asm__ volatile("" : "+r"(size));
    return size;
}

void *hide(void *pointer) {
    __asm__ volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

int calls;

void give_up_at_third() {
    if (++calls == 3) {
        std::set_new_handler(nullptr);
    }
}

void throw_number() {
    calls++;
    throw 7;
}

bool expect(bool right, const char *what) {
    if (!right) {
        std::fprintf(stderr, "wrong: %s\n", what);
    }
    return right;
}

bool catches_bad_alloc() {
    try {
        hide(operator new(too_much()));
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

bool catches_the_handlers() {
    try {
        hide(operator new[](too_much()));
    } catch (int number) {
        return number == 7;
    }
    return false;
}

} // namespace

// What is thrown leaves this library.
void *throws_demand(size_t size) {
    return hide(operator new(size));
}

int throws_work(void) {
    const std::align_val_t aligned{ 256 };
    void *block = hide(operator new(100, aligned));
    bool good = expect(reinterpret_cast<uintptr_t>(block) % 256 == 0, "alignment");
    operator delete(block, aligned);
    good &= expect(catches_bad_alloc(), "bad_alloc without a handler");
    std::set_new_handler(give_up_at_third);
    good &= expect(catches_bad_alloc() && calls == 3, "bad_alloc after the handler gave up");
    calls = 0;
    std::set_new_handler(throw_number);
    good &= expect(catches_the_handlers() && calls == 1, "the handler's own exception");
    good &= expect(hide(operator new(too_much(), std::nothrow)) == nullptr && calls == 2,
                   "NULL where the handler throws");
    std::set_new_handler(nullptr);
    good &= expect(hide(operator new[](too_much(), aligned, std::nothrow)) == nullptr, "NULL");
    return good ? 0 : 1;
}

#ifdef PROGRAM
// With an argument a block is freed twice, to see whose heap it is.
int main(int count, char **) {
    char *volatile block = new char[100];
    delete[] block;
    if (count > 1) {
        delete[] block;
    }
    return throws_work();
}
#endif
