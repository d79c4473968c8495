package import InletCore
internal import InletLinux
package import SystemPackage

/// What a running agent has given up of the file system, for whoever asks.
package struct ConfinementReport: Codable, Sendable, Equatable {
    /// The version of Landlock that holds it; nil where nothing does.
    package var landlock: Int?
    /// Why nothing does.
    package var reason: String?
    /// Folders that it may read, escaped, with all that is below them.
    package var readable: [String]
    /// Those of them in which it may make, change and remove files.
    package var writable: [String]

    package init(landlock: Int, _ rules: [AccessRule]) {
        self.landlock = landlock
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
        return places.contains { real.starts(with: FilePath($0)) }
    }

    var event: AgentEvent {
        landlock.map { .agentConfined(landlock: $0, places: readable.count) } ?? .agentUnconfined(reason: reason ?? "")
    }
}
