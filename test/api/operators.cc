// Do all twenty operators new and delete work together and with malloc, fail as the standard says
// (handler, exception, NULL), keep alignment, and shrug off a wrong size?
//
// Compiled as C++17 and as C++20.
#include "../harness.h"

#include <malloc.h>

#include <exception>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

const std::align_val_t aligned64{ 64 };
const std::align_val_t aligned_page{ 4096 };

// A size that no heap has, hidden from the compiler's own opinion.
size_t too_much() {
    return any(static_cast<size_t>(PTRDIFF_MAX) - 100);
}

void *plain(size_t size) {
    return hide(operator new(size));
}

void every_pair() {
    for (size_t size = 0; size <= (3u << 20); size = size * 3 / 2 + 1) {
        void *blocks[] = { plain(size),
                           hide(operator new[](size)),
                           hide(operator new(size, std::nothrow)),
                           hide(operator new[](size, std::nothrow)),
                           hide(operator new(size, aligned64)),
                           hide(operator new[](size, aligned_page)),
                           hide(operator new(size, aligned64, std::nothrow)),
                           hide(operator new[](size, aligned_page, std::nothrow)) };
        for (size_t i = 0; i < 8; i++) {
            size_t alignment = i < 4 ? 16 : i % 2 == 0 ? 64 : 4096;
            CHECK(blocks[i] != nullptr);
            CHECK_EQ(reinterpret_cast<uintptr_t>(blocks[i]) % alignment, 0);
            CHECK(malloc_usable_size(blocks[i]) >= size);
            memset(blocks[i], static_cast<int>(i), size);
        }
        errno = ERANGE;
        operator delete(blocks[0]);
        operator delete[](blocks[1], size);
        operator delete(blocks[2], std::nothrow);
        operator delete[](blocks[3], std::nothrow);
        operator delete(blocks[4], size, aligned64);
        operator delete[](blocks[5], aligned_page);
        operator delete(blocks[6], aligned64, std::nothrow);
        operator delete[](blocks[7], aligned_page, std::nothrow);
        CHECK_EQ(errno, ERANGE);
        operator delete(plain(size), size);
        operator delete[](hide(operator new[](size)));
        operator delete[](hide(operator new[](size, aligned64)), size, aligned64);
        operator delete(hide(operator new(size, aligned64)), aligned64);
        free(hide(plain(size)));
    }
    operator delete(nullptr);
    operator delete[](nullptr);
    operator delete(nullptr, static_cast<size_t>(8));
    operator delete(nullptr, aligned64);
}

template <typename Get> bool throws_bad_alloc(Get get) {
    try {
        operator delete(hide(get()));
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

// Every throwing form throws, every other one gives NULL; nothing is printed, nothing aborts.
void failures_without_handler() {
    std::set_new_handler(nullptr);
    for (size_t size : { too_much(), any(SIZE_MAX), any(SIZE_MAX / 2 + 2), any(SIZE_MAX - 4096) }) {
        CHECK(throws_bad_alloc([=] { return operator new(size); }));
        CHECK(throws_bad_alloc([=] { return operator new[](size); }));
        CHECK(throws_bad_alloc([=] { return operator new(size, aligned64); }));
        CHECK(throws_bad_alloc([=] { return operator new[](size, aligned64); }));
        CHECK(hide(operator new(size, std::nothrow)) == nullptr);
        CHECK(hide(operator new[](size, std::nothrow)) == nullptr);
        CHECK(hide(operator new(size, aligned64, std::nothrow)) == nullptr);
        CHECK(hide(operator new[](size, aligned64, std::nothrow)) == nullptr);
    }
    CHECK(throws_bad_alloc([] { return new char[too_much()]; }));
    void *block = plain(100);
    operator delete(block);
}

int handler_calls;

void count_then_give_up() {
    if (++handler_calls == 5) {
        std::set_new_handler(nullptr);
    }
}

struct special : std::bad_alloc {
    int number = 77;
};

void throw_special() {
    throw special();
}

template <typename Get> void calls_the_handler_until_it_gives_up(Get get) {
    handler_calls = 0;
    std::set_new_handler(count_then_give_up);
    get();
    CHECK_EQ(handler_calls, 5);
}

template <typename Get> void passes_the_handlers_exception(Get get) {
    std::set_new_handler(throw_special);
    try {
        get();
        CHECK(!"an exception was due");
    } catch (const special &caught) {
        CHECK_EQ(caught.number, 77);
    }
    std::set_new_handler(nullptr);
}

void failures_with_handler() {
    calls_the_handler_until_it_gives_up(
        [] { CHECK(throws_bad_alloc([] { return operator new(too_much()); })); });
    calls_the_handler_until_it_gives_up(
        [] { CHECK(throws_bad_alloc([] { return operator new[](too_much()); })); });
    calls_the_handler_until_it_gives_up(
        [] { CHECK(throws_bad_alloc([] { return operator new(too_much(), aligned64); })); });
    calls_the_handler_until_it_gives_up(
        [] { CHECK(throws_bad_alloc([] { return operator new[](too_much(), aligned64); })); });
    calls_the_handler_until_it_gives_up(
        [] { CHECK(hide(operator new(too_much(), std::nothrow)) == nullptr); });
    calls_the_handler_until_it_gives_up(
        [] { CHECK(hide(operator new[](too_much(), std::nothrow)) == nullptr); });
    calls_the_handler_until_it_gives_up(
        [] { CHECK(hide(operator new(too_much(), aligned64, std::nothrow)) == nullptr); });
    passes_the_handlers_exception([] { return plain(too_much()); });
    passes_the_handlers_exception([] { return hide(operator new[](too_much())); });
    passes_the_handlers_exception([] { return hide(operator new(too_much(), aligned64)); });
}

struct counted {
    static int alive;
    counted() {
        alive++;
    }
    counted(const counted &) {
        alive++;
    }
    ~counted() {
        alive--;
    }
};
int counted::alive;

void throw_counted() {
    handler_calls++;
    throw counted();
}

void throw_bad_alloc() {
    handler_calls++;
    throw std::bad_alloc();
}

void throw_number() {
    handler_calls++;
    throw 5;
}

// Asks for too much itself, once more, and gives up by throwing.
void throw_from_within() {
    if (handler_calls++ == 0) {
        CHECK(hide(operator new(too_much(), std::nothrow)) == nullptr);
        CHECK_EQ(handler_calls, 2);
    }
    throw counted();
}

// What the handler throws ends in the forms that throw nothing: NULL, and the exception is gone.
void nothrow_forms_swallow_the_handlers_exception() {
    for (auto handler : { throw_special, throw_bad_alloc, throw_number, throw_counted }) {
        std::set_new_handler(handler);
        for (int i = 0; i < 3; i++) {
            CHECK(hide(operator new(too_much(), std::nothrow)) == nullptr);
            CHECK(hide(operator new[](too_much(), std::nothrow)) == nullptr);
            CHECK(hide(operator new(too_much(), aligned64, std::nothrow)) == nullptr);
            CHECK(hide(operator new[](too_much(), aligned64, std::nothrow)) == nullptr);
        }
        CHECK_EQ(std::uncaught_exceptions(), 0);
    }
    CHECK_EQ(handler_calls % 12, 0);
    handler_calls = 0;
    std::set_new_handler(throw_from_within);
    CHECK(hide(operator new(too_much(), std::nothrow)) == nullptr);
    CHECK_EQ(handler_calls, 2);
    CHECK_EQ(counted::alive, 0);
    // While another exception is on its way, and in the middle of a catch.
    std::set_new_handler(throw_counted);
    try {
        struct at_end {
            ~at_end() {
                CHECK(hide(operator new(too_much(), std::nothrow)) == nullptr);
            }
        } here;
        throw special();
    } catch (const special &caught) {
        CHECK(hide(operator new(too_much(), std::nothrow)) == nullptr);
        CHECK_EQ(caught.number, 77);
    }
    CHECK_EQ(counted::alive, 0);
    std::set_new_handler(nullptr);
}

void *reserve;

void free_the_reserve() {
    if (reserve == nullptr) {
        std::set_new_handler(nullptr);
        return;
    }
    free(reserve);
    reserve = nullptr;
}

// Real exhaustion: exceptions themselves need memory, the handler helps once.
void exhaustion(void *) {
    struct rlimit limit = { 256 << 20, 256 << 20 };
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
    reserve = hide(malloc(32 << 20));
    REQUIRE(reserve != nullptr);
    std::set_new_handler(free_the_reserve);
    std::vector<std::unique_ptr<char[]>> held;
    held.reserve(4096);
    bool caught = false;
    try {
        for (;;) {
            held.emplace_back(new char[1 << 20]);
        }
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    CHECK(caught && reserve == nullptr);
    CHECK(held.size() > 150);
    // Down to the last byte, then an exception out of a string.
    while (void *block = hide(malloc(64))) {
        memset(block, 1, 64);
    }
    for (int i = 0; i < 1000; i++) {
        try {
            std::string text(100000, 'x');
            CHECK(hide(&text[0]) == nullptr);
        } catch (const std::bad_alloc &) {
            CHECK(hide(malloc(5 << 20)) == nullptr);
        }
    }
    held.clear();
    std::string text(100000, 'x');
    CHECK(text.size() == 100000);
}

// Programs pass wrong sizes, by deleting through a base or by mixed headers, and live.
void wrong_sizes_are_tolerated() {
    const size_t wrong[] = { 0, 1, 99, 101, 116, 10000, SIZE_MAX };
    for (size_t size : wrong) {
        operator delete(plain(100), any(size));
        operator delete[](hide(operator new[](100)), any(size));
        operator delete(hide(operator new(100, aligned64)), any(size), aligned64);
        operator delete(plain(100000), any(size));
        operator delete(plain(5 << 20), any(size));
    }
    operator delete(hide(memalign(32768, 32768)), static_cast<size_t>(32768));
    operator delete(hide(memalign(65536, 131072)), static_cast<size_t>(131072));
    operator delete(hide(memalign(256, 1)), static_cast<size_t>(1));
    operator delete(hide(aligned_alloc(4096, 100)), static_cast<size_t>(100), aligned_page);
    operator delete(plain(100), 100, aligned64);
}

struct alignas(128) wide {
    char bytes[200];
    virtual ~wide() = default;
};

void library_types_in_threads() {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([t] {
            thread_local std::vector<std::string> kept;
            std::map<int, std::unique_ptr<wide>> map;
            for (int i = 0; i < 5000; i++) {
                map[i * 7 % 1000] = std::make_unique<wide>();
                CHECK_EQ(reinterpret_cast<uintptr_t>(map[i * 7 % 1000].get()) % 128, 0);
                kept.emplace_back(static_cast<size_t>(i % 300), static_cast<char>('a' + t));
                if (i % 1000 == 999) {
                    kept.clear();
                }
            }
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
}

} // namespace

int main() {
    api_begin(60);
    every_pair();
    failures_without_handler();
    failures_with_handler();
    handler_calls = 0;
    nothrow_forms_swallow_the_handlers_exception();
    wrong_sizes_are_tolerated();
    library_types_in_threads();
    struct child_end end = run_child(exhaustion, nullptr, 30);
    expect_exit(&end, 0, "exceptions while memory is exhausted");
    CHECK_SAY(end.length == 0, "%s", end.text);
    return test_end();
}
