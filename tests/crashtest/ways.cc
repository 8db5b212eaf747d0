// SPDX-License-Identifier: BSD-3-Clause
/*
 * ways.cc - how C++ stores without saying so: algorithms of its library, which gcc
 * makes plain stores of, objects that are copied, and destructors that run while an
 * exception is thrown. All of it has to be seen.
 */
#include <crashtest.h>
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace
{
struct record {
    uint64_t a, b, c;
};

struct ways {
    alignas(64) std::array<uint64_t, 8> copied;
    alignas(64) char filled[64];
    alignas(64) record records[3];
    alignas(64) char text[40];
    uint64_t unwound;
    alignas(64) std::atomic<uint64_t> count;
};

void persist(const void *address, size_t size)
{
    uintptr_t line = reinterpret_cast<uintptr_t>(address) & ~uintptr_t{63};

    for (; line < reinterpret_cast<uintptr_t>(address) + size; line += 64)
        _mm_clflushopt(reinterpret_cast<void *>(line));
    _mm_sfence();
}

struct counts_unwinding {
    ways *all;
    ~counts_unwinding()
    {
        all->unwound++;
    }
};

void fail(ways *all, uint64_t value)
{
    counts_unwinding counts{all};

    throw std::runtime_error("set " + std::to_string(value));
}

void set(ways *all, uint64_t value)
{
    std::array<uint64_t, 8> from;

    from.fill(value);
    std::copy(from.begin(), from.end(), all->copied.begin());
    std::copy_backward(from.begin(), from.begin() + 3, all->copied.begin() + 3);
    std::fill(std::begin(all->filled), std::end(all->filled), static_cast<char>(value));
    __builtin_memset(all->filled, static_cast<int>(value), 32);
    all->records[0] = record{value, value, value};
    new (&all->records[1]) record(all->records[0]);
    std::swap(all->records[1], all->records[2]);
    std::string("set").copy(all->text, 4);
    try {
        fail(all, value);
    } catch (const std::exception &error) {
        std::strcpy(all->text, error.what());
    }
    persist(all, sizeof(*all));
    all->count.store(value, std::memory_order_relaxed);
    persist(&all->count, sizeof(all->count));
}

int run(const crashtest_pm *pm, void *)
{
    for (uint64_t value = 1; value <= 2; value++) {
        crashtest_begin("set %d", static_cast<int>(value));
        set(static_cast<ways *>(pm->base), value);
        crashtest_end();
    }
    return 0;
}

int check(const crashtest_pm *pm, const crashtest_crash *crash, void *)
{
    const ways *all = static_cast<const ways *>(pm->base);
    uint64_t count = all->count.load();

    if (count < crash->returned)
        return crashtest_fail("%d are counted", static_cast<int>(count));
    if (count > 0 && (all->copied[7] < count || all->unwound < count))
        return crashtest_fail("not all is there that was counted");
    return 0;
}
} // namespace

int main(int argc, char **argv)
{
    crashtest_program program{};

    program.name = "ways";
    program.pm_size = sizeof(ways);
    program.run = run;
    program.check = check;
    return crashtest_main(argc, argv, &program);
}
