import Foundation

/// Programs that others wrote. `INLET_INTEROP` names the virtual environment that they are installed in.
package enum ReferenceTool {
    package static let folder = ProcessInfo.processInfo.environment["INLET_INTEROP"].flatMap { $0.isEmpty ? nil : $0 }

    /// Those for checksum lists.
    package static let manifests = ["ascmhl", "ascmhl-debug", "simple-mhl", "mhlver"]

    package static let manifestReason: String =
        "needs mhl-suite: INLET_INTEROP must name a virtual environment that has it "
        + "(packaging/test.sh makes one where PyPI can be reached and Python is 3.11 or newer)"

    package static func areThere(_ names: [String]) -> Bool {
        guard let folder else { return false }
        return names.allSatisfy { FileManager.default.isExecutableFile(atPath: "\(folder)/bin/\($0)") }
    }

    /// Runs a tool to its end. It may look for newer versions of itself over the network: there is none.
    package static func run(_ tool: String, _ arguments: String...) throws -> (code: Int32, said: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "\(folder ?? "")/bin/\(tool)")
        process.arguments = arguments
        process.environment = [
            "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONUTF8": "1", "https_proxy": "http://127.0.0.1:9",
        ]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, said)
    }
}
