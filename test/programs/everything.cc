// Includes most of the standard library and uses enough of it that the compiler instantiates a few
// thousand templates.

#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <barrier>
#include <bitset>
#include <charconv>
#include <chrono>
#include <complex>
#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <forward_list>
#include <fstream>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <latch>
#include <limits>
#include <list>
#include <locale>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <ranges>
#include <regex>
#include <set>
#include <shared_mutex>
#include <span>
#include <sstream>
#include <stack>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <valarray>
#include <variant>
#include <vector>

namespace {

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};

struct Square final : Shape {
    explicit Square(double side) : side(side) {
    }
    double area() const override {
        return side * side;
    }
    double side;
};

struct alignas(256) Circle final : Shape {
    explicit Circle(double radius) : radius(radius) {
    }
    double area() const override {
        return 3 * radius * radius;
    }
    double radius;
};

template <int Depth> struct Tower {
    std::map<std::string, std::vector<Tower<Depth - 1>>> floors;
    std::variant<int, std::string, std::array<double, Depth>> roof;
};

template <> struct Tower<0> { int ground = 0; };

long fill(unsigned seed) {
    std::mt19937 draw(seed);
    std::unordered_map<std::string, std::list<int>> table;
    std::deque<std::unique_ptr<Shape>> shapes;
    std::set<std::u32string> names;
    for (int step = 0; step < 20000; step++) {
        std::string key = "key" + std::to_string(draw() % 1000);
        table[key].push_back(static_cast<int>(draw() % 100));
        if (draw() % 2 != 0) {
            shapes.push_back(std::make_unique<Square>(draw() % 10));
        } else {
            shapes.push_front(std::make_unique<Circle>(draw() % 10));
        }
        names.insert(std::u32string(draw() % 40, U'n'));
        if (shapes.size() > 500) {
            shapes.resize(100);
        }
    }
    long sum = static_cast<long>(names.size());
    for (const auto &[key, list] : table) {
        sum += std::accumulate(list.begin(), list.end(), 0L);
    }
    for (const auto &shape : shapes) {
        sum += static_cast<long>(shape->area());
    }
    return sum;
}

long thrown(int depth) {
    std::vector<std::string> ballast(static_cast<std::size_t>(depth), std::string(100, 'x'));
    if (depth == 0) {
        throw std::runtime_error("the bottom is reached");
    }
    return thrown(depth - 1) + static_cast<long>(ballast.size());
}

} // namespace

int main() {
    std::vector<std::future<long>> results;
    for (unsigned seed = 1; seed <= 8; seed++) {
        results.push_back(std::async(std::launch::async, fill, seed));
    }
    for (auto &result : results) {
        std::cout << result.get() << '\n';
    }

    Tower<12> tower;
    tower.floors["first"].resize(20);
    tower.floors["first"][3].roof = std::string("slate");
    std::cout << tower.floors.size() << '\n';

    std::pmr::monotonic_buffer_resource pool;
    std::pmr::vector<std::pmr::string> lines(&pool);
    for (int line = 0; line < 2000; line++) {
        lines.emplace_back("a line that is longer than the small string optimisation");
    }
    std::cout << lines.size() << '\n';

    std::regex pattern("([a-z]+)-([0-9]+)");
    std::string text = "alpha-1 beta-22 gamma-333";
    for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
        std::cout << (*at)[2] << (*at)[1] << '\n';
    }

    int caught = 0;
    for (int turn = 0; turn < 200; turn++) {
        try {
            caught += static_cast<int>(thrown(turn % 50));
        } catch (const std::exception &error) {
            caught += static_cast<int>(std::string_view(error.what()).size());
        }
    }
    std::cout << caught << '\n';

    auto odd = std::views::iota(0, 100000) | std::views::filter([](int n) { return n % 2 != 0; });
    std::vector<int> numbers(odd.begin(), odd.end());
    std::ranges::reverse(numbers);
    std::cout << numbers.front() << ' ' << numbers.size() << '\n';
    return 0;
}
