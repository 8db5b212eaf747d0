// SPDX-License-Identifier: BSD-3-Clause
//
// threads.cc - what C++ has for threads, in the standard library and without pthreads'
// names: it is scheduled, too.
#include <crashtest.h>
#include <libpmem.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace
{
constexpr int threads = 3;

std::mutex mutex;
std::condition_variable changed;
std::once_flag once;
std::atomic<int> added{0};
bool may_start;

std::uint64_t amount_slowly()
{
    std::this_thread::yield();
    return 3;
}

std::uint64_t amount()
{
    static const std::uint64_t value = amount_slowly();

    return value;
}

void add(std::uint64_t *sum, int number)
{
    std::call_once(once, [] { amount(); });
    {
        std::unique_lock<std::mutex> lock(mutex);

        changed.wait(lock, [] { return may_start; });
    }
    std::this_thread::sleep_for(std::chrono::minutes(1));
    crashtest_begin("add %d", number);
    {
        std::lock_guard<std::mutex> lock(mutex);

        *sum += amount();
        pmem_persist(sum, sizeof(*sum));
    }
    crashtest_end();
    added++;
    added.notify_all();
}

int run(const struct crashtest_pm *pm, void *)
{
    std::vector<std::thread> all;

    for (int i = 0; i < threads; i++)
        all.emplace_back(add, static_cast<std::uint64_t *>(pm->base), i);
    {
        std::lock_guard<std::mutex> lock(mutex);

        may_start = true;
    }
    changed.notify_all();
    for (int now = added; now < threads; now = added)
        added.wait(now);
    for (std::thread &thread : all)
        thread.join();
    return 0;
}

int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash, void *)
{
    const std::uint64_t sum = *static_cast<const std::uint64_t *>(pm->base);

    if (sum < 3 * crash->returned || sum > 3 * threads)
        return crashtest_fail("the sum is %d after %d", static_cast<int>(sum),
                              static_cast<int>(crash->returned));
    return 0;
}
} // namespace

int main(int argc, char **argv)
{
    static struct crashtest_program program = {};

    program.name = "cpp";
    program.pm_size = sizeof(std::uint64_t);
    program.run = run;
    program.check = check;
    return crashtest_main(argc, argv, &program);
}
