package import InletCore
internal import InletLinux
package import SystemPackage

/// What a running agent has given up, for whoever asks.
package struct ConfinementReport: Codable, Sendable, Equatable {
    /// The version of Landlock that holds it; nil where nothing does.
    package var landlock: Int?
    /// How many system calls it has given up; nil where it has none.
    package var denied_calls: Int?
    /// Why it has them all, though Landlock holds it.
    package var calls_reason: String?
    /// Why nothing does.
    package var reason: String?
    /// Folders that it may read, escaped, with all that is below them.
    package var readable: [String]
    /// Those of them in which it may make, change and remove files.
    package var writable: [String]

    /// - Parameter callsReason: why no system call is given up; nil where they are.
    package init(landlock: Int, callsReason: String?, _ rules: [AccessRule]) {
        self.landlock = landlock
        denied_calls = callsReason == nil ? CallFilter.count : nil
        calls_reason = callsReason
        readable = rules.map(\.path.display)
        writable = rules.filter(\.mayWrite).map(\.path.display)
    }

    package init(reason: String) {
        self.reason = reason
        (readable, writable) = ([], [])
    }

    /// Whether it may read the file at `path`, as far as this holds it back.
    package func reaches(_ path: FilePath) -> Bool {
        isBelow(path, readable)
    }

    /// Whether it may make files in that folder.
    package func mayWrite(in folder: FilePath) -> Bool { isBelow(folder, writable) }

    private func isBelow(_ path: FilePath, _ places: [String]) -> Bool {
        if landlock == nil { return true }
        let real = FilePath((path.realPath ?? path).display)
        return places.contains { real.isWithin(FilePath($0)) }
    }

    var event: AgentEvent {
        guard let landlock else { return .agentUnconfined(reason: reason ?? "") }
        return .agentConfined(
            landlock: landlock, places: readable.count, calls: denied_calls ?? 0, reason: calls_reason)
    }
}
