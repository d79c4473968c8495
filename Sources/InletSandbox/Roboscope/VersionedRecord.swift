import InletCore

/// What the server keeps with a version: a change counts only when it was made on the latest one.
protocol VersionedRecord {
    var version: Int64 { get set }
    var updated: WallTime { get set }
}

extension RoboscopeSandbox.WorkSession: VersionedRecord {}
extension RoboscopeSandbox.Marker: VersionedRecord {}

extension VersionedRecord {
    /// Makes all of a change, or nothing of it.
    ///
    /// - Parameters:
    ///   - given: The version that the change was made on.
    ///   - fault: With `conflict` somebody else is faster.
    mutating func change(
        on given: Int64?, _ rules: RoboscopeRules, _ fault: FaultAction?, _ now: WallTime,
        _ apply: (inout Self) throws(RoboscopeRefusal) -> Void
    ) throws(RoboscopeRefusal) {
        if fault == .conflict { version += 1 }
        try rules.check(given, against: version)
        var changed = self
        try apply(&changed)
        changed.version += 1
        changed.updated = now
        self = changed
    }
}

extension RoboscopeRules {
    /// Refuses a change that was made on another version.
    fileprivate func check(_ given: Int64?, against current: Int64) throws(RoboscopeRefusal) {
        guard let given else {
            guard !needsVersion else { throw RoboscopeRefusal(status: 400, message: "version is required") }
            return
        }
        guard given == current else { throw .conflict }
    }
}
