package import InletCore
internal import InletJournal

/// How the files of the last 30 days ended, by day. In memory: the journal is read once, at the start.
package struct RecentEnds: Sendable {
    /// Today is one of them.
    static let days: Int64 = 30
    /// Failed files that are remembered one by one, so that one that a person sends again counts once.
    static let mostRemembered = 10_000

    private static let delivered: Set<FileState> = [.delivered, .duplicate]
    private static let failed: Set<FileState> = [.failed, .expired, .rejected, .gone]

    private var counts: [Int64: (ok: Int, failed: Int)] = [:]
    /// The day on which each failed file ended.
    private var failures: [Int64: Int64] = [:]

    package init() {}

    /// How many failed files it remembers one by one.
    var remembered: Int { failures.count }

    /// A file is finished. - Parameter job: its number; a file that failed before counts by its newest end.
    mutating func add(_ job: Int64, _ state: FileState, at time: WallTime) {
        let day = Self.day(time)
        if let earlier = failures.removeValue(forKey: job) { counts[earlier]?.failed -= 1 }
        if Self.delivered.contains(state) {
            counts[day, default: (0, 0)].ok += 1
        } else if Self.failed.contains(state) {
            counts[day, default: (0, 0)].failed += 1
            if failures.count < Self.mostRemembered { failures[job] = day }
        }
        if counts.count > Int(Self.days) { forget(before: day) }
    }

    private mutating func forget(before today: Int64) {
        let first = today - Self.days + 1
        counts = counts.filter { $0.key >= first }
        failures = failures.filter { $0.value >= first }
    }

    /// The sums of the last 30 days.
    package func sums(at now: WallTime) -> (ok: Int, failed: Int) {
        let first = Self.day(now) - Self.days + 1
        return counts.reduce(into: (ok: 0, failed: 0)) { sums, day in
            guard day.key >= first else { return }
            (sums.ok, sums.failed) = (sums.ok + day.value.ok, sums.failed + day.value.failed)
        }
    }

    /// When the first of the 30 days begins, by UTC.
    static func start(at now: WallTime) -> WallTime {
        WallTime(milliseconds: (day(now) - days + 1) * millisecondsOfDay)
    }

    private static let millisecondsOfDay: Int64 = 86_400_000

    private static func day(_ time: WallTime) -> Int64 {
        // Rounded down, also before 1970.
        let (day, rest) = time.milliseconds.quotientAndRemainder(dividingBy: millisecondsOfDay)
        return rest < 0 ? day - 1 : day
    }
}
