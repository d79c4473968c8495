"""Whether a quantity that is measured again and again grows, beyond what its own noise explains."""

import statistics

MIB = 1 << 20
HOUR = 3600
# What is too much over a day, and what a run of less than an hour can tell from noise.
MOST_PER_HOUR = 1 * MIB
LEAST_TOLD = (64 << 10) / 60
# Seconds of one wave of the load.
WAVE = 120


def slope(points):
    """Theil-Sen: the median of the slopes of all pairs of points (seconds, value); a few wild points do not move it."""
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for at, a in enumerate(points) for b in points[at + 1:] if b[0] > a[0]]
    return statistics.median(slopes) if slopes else 0.0


def spread(points, per_second):
    """The middle half of what is left when the trend is taken out."""
    left = sorted(value - per_second * time for time, value in points)
    return left[(3 * len(left)) // 4] - left[len(left) // 4] if left else 0.0


def bound(points, per_second):
    """The steepest slope (per second) that still passes: 1 MiB an hour, or twice the spread over the time that was
    measured, where that is more; and never less than 64 KiB a minute in a run of less than an hour."""
    time = points[-1][0] - points[0][0] if len(points) > 1 else 1
    told = LEAST_TOLD if time < HOUR else 0
    return max(MOST_PER_HOUR / HOUR, 2 * spread(points, per_second) / time, told)


def settled(points):
    """Without the warm-up: the first quarter of the time, but at least the first full wave of the load."""
    begin, end = points[0][0], points[-1][0]
    since = begin + max(0.25 * (end - begin), min(WAVE, 0.5 * (end - begin)))
    return [point for point in points if point[0] >= since]


def step(points):
    """By how much the lowest of the last third is above the lowest of the first: for counts, which follow the load, and whose
    low-water mark only a leak lifts."""
    third = max(1, len(points) // 3)
    values = [value for _, value in points]
    return min(values[-third:]) - min(values[:third])


def self_test():
    times = [5.0 * number for number in range(120)]
    noise = [((number * 7919) % 101 - 50) * (8 << 10) for number in range(120)]
    flat = [(time, 40 * MIB + wild) for time, wild in zip(times, noise)]
    leak = [(time, 40 * MIB + wild + time * 20_000) for time, wild in zip(times, noise)]
    spike = [(time, 40 * MIB + (30 * MIB if number == 50 else 0)) for number, time in enumerate(times)]
    for name, points, grows in (("flat", flat, False), ("leak", leak, True), ("spike", spike, False)):
        if (slope(points) > bound(points, slope(points))) != grows:
            raise SystemExit(f"{name}: {slope(points)} against {bound(points, slope(points))}")
    hours = [(60.0 * number, 40 * MIB + 60.0 * number * 600) for number in range(240)]
    if slope(hours) <= bound(hours, slope(hours)):
        raise SystemExit("2 MiB an hour must be seen in four hours")
    if abs(slope(leak) - 20_000) > 2000 or len(settled(flat)) != 90:
        raise SystemExit("slope or settled is wrong")
    if step([(0, 20), (1, 51), (2, 20), (3, 20), (4, 21), (5, 52)]) > 1 or step([(0, 9), (1, 9), (2, 15)]) != 6:
        raise SystemExit("step is wrong")
    print("ok    trend")
