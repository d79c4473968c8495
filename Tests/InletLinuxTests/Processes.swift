import Foundation
import InletTestSupport
import SystemPackage

/// Runs a program to its end and returns its trimmed output; an exit code other than 0 is thrown.
@discardableResult
func run(_ program: String, _ arguments: String...) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw ProgramFailed(program: program, code: process.terminationStatus)
    }
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
}

struct ProgramFailed: Error {
    let program: String
    let code: Int32
}

/// Another process that runs until the value goes: the far side of locks and leases.
final class OtherProcess {
    private let process = Process()
    private let output = Pipe()
    private let input = Pipe()

    /// Starts a shell script and waits for the first line that it prints.
    init(_ script: String, _ arguments: String...) throws {
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", script, "sh"] + arguments
        process.standardOutput = output
        process.standardInput = input
        try process.run()
        Leash.hold(process.processIdentifier)
        _ = output.fileHandleForReading.availableData
    }

    var id: Int32 { process.processIdentifier }

    /// Kills it and waits until it is gone.
    func kill() {
        if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    deinit { kill() }
}
