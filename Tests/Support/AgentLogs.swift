internal import Foundation
package import SystemPackage
internal import Testing

/// Where the agents of tests write what they say: packaging/checks/run_tests.py shows and keeps that of tests that failed.
package enum AgentLogs {
    private static let folder = ProcessInfo.processInfo.environment["INLET_AGENT_LOGS"].map { FilePath($0) }

    /// Whether somebody shows them.
    package static var areKept: Bool { folder != nil }

    /// A new file for an agent of the test that runs, called after the line that declares the test; nil where nobody asks for
    /// it.
    package static func file() -> FilePath? {
        let place = Test.current.map { "\($0.sourceLocation.fileName):\($0.sourceLocation.line)" } ?? "no test"
        return folder?.appending("\(place) \(UInt32.random(in: .min ... .max)).log")
    }
}

/// The log of an agent that runs in the test's own process: written as it comes, so that a test that hangs has one.
package final class AgentLog: Sendable {
    private let handle: FileHandle?

    package init() {
        handle = AgentLogs.file().flatMap { file in
            guard FileManager.default.createFile(atPath: file.string, contents: nil) else { return nil }
            return FileHandle(forWritingAtPath: file.string)
        }
    }

    deinit { try? handle?.close() }

    package func add(_ line: @autoclosure () -> String) {
        guard let handle else { return }
        // The test is decided by other things: what cannot be kept is only not shown.
        try? handle.write(contentsOf: Data("\(line())\n".utf8))
    }
}
