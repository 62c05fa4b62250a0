// Can threads that hold the loader's lock and allocate meet threads inside the heap, exceptions and
// walks over the loaded objects included, without ever waiting for each other?
#include "../work.h"

#include <link.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> stop;

int allocate_in_callback(struct dl_phdr_info *, size_t, void *argument) {
    auto *dice = static_cast<struct dice *>(argument);
    size_t size = static_cast<size_t>(1) << dice_below(dice, 22);
    free(hide(malloc(size)));
    return 0;
}

void walk_objects() {
    struct dice dice = { 1 };
    while (!stop) {
        dl_iterate_phdr(allocate_in_callback, &dice);
    }
}

void open_and_close() {
    while (!stop) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        CHECK(library != nullptr);
        void *missing = dlopen("there is no such library", RTLD_NOW);
        CHECK(missing == nullptr && dlerror() != nullptr);
        dlclose(library);
    }
}

void mixed_work(uint64_t seed) {
    struct work work;
    work_begin(&work, seed, 4 << 20);
    while (!stop) {
        work_step(&work);
    }
    work_end(&work);
}

void throw_and_catch() {
    for (int i = 0; !stop; i++) {
        try {
            throw std::runtime_error(std::string(static_cast<size_t>(i % 500), 'x'));
        } catch (const std::exception &caught) {
            CHECK(strlen(caught.what()) == static_cast<size_t>(i % 500));
        }
    }
}

void come_and_go() {
    while (!stop) {
        std::thread([] { free(hide(malloc(100))); }).join();
    }
}

} // namespace

int main() {
    api_begin(40);
    std::vector<std::thread> threads;
    threads.emplace_back(walk_objects);
    threads.emplace_back(open_and_close);
    threads.emplace_back(mixed_work, 2);
    threads.emplace_back(throw_and_catch);
    threads.emplace_back(come_and_go);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    stop = true;
    for (auto &thread : threads) {
        thread.join();
    }
    return test_end();
}
