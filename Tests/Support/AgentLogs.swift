internal import Foundation
package import SystemPackage
internal import Testing

/// Where the agents of tests write what they say: packaging/run_tests.py shows and keeps that of tests that failed.
package enum AgentLogs {
    private static let folder = ProcessInfo.processInfo.environment["INLET_AGENT_LOGS"].map { FilePath($0) }

    /// A new file for an agent of the test that runs, called after the line that declares the test; nil where nobody asks for
    /// it.
    package static func file() -> FilePath? {
        let place = Test.current.map { "\($0.sourceLocation.fileName):\($0.sourceLocation.line)" } ?? "no test"
        return folder?.appending("\(place) \(UInt32.random(in: .min ... .max)).log")
    }

    /// For an agent of the test's own process, once it has said all.
    package static func keep(_ text: @autoclosure () -> String) {
        guard let file = file() else { return }
        // The test is over, and decided: what cannot be kept is only not shown.
        try? Data(text().utf8).write(to: URL(fileURLWithPath: file.string))
    }
}
