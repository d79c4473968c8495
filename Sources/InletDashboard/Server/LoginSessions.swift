/// Who is logged in, by the hash of his cookie. Pure: time is a parameter.
struct LoginSessions: Sendable {
    typealias Instant = ContinuousClock.Instant

    static let cookieName = "inlet_session"
    /// Since its last request.
    static let life = Duration.seconds(12 * 3600)
    /// The one that was used longest ago gives way.
    static let most = 64

    private struct Record {
        var access: Access
        var used: Instant
    }

    private var records: [[UInt8]: Record] = [:]

    mutating func open(_ id: [UInt8], _ access: Access, at now: Instant) {
        records = records.filter { $0.value.used.advanced(by: Self.life) > now }
        if records.count >= Self.most, let oldest = records.min(by: { $0.value.used < $1.value.used })?.key {
            records[oldest] = nil
        }
        records[id] = Record(access: access, used: now)
    }

    /// nil for one that there is not, or not any more; a session that is asked for lives on.
    mutating func access(of id: [UInt8], at now: Instant) -> Access? {
        guard let record = records[id] else { return nil }
        guard record.used.advanced(by: Self.life) > now else {
            records[id] = nil
            return nil
        }
        records[id]?.used = now
        return record.access
    }

    mutating func close(_ id: [UInt8]) { records[id] = nil }
}
